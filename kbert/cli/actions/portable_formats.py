"""Formats of `kbert export`, and what must hold of a network's export, without TensorFlow."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kbert.hints import nearest

SAVED_MODEL, ONNX, LITERT = "savedmodel", "onnx", "litert"
FORMATS = (SAVED_MODEL, ONNX, LITERT)
# Tasks that search word by word, and whose networks are not written in the format.
_REFUSED = {ONNX: ("captioning",), LITERT: ("translation", "captioning")}
_FLOATS = "float32"  # the one precision of a network


def check_portable(
    format: str, runs: Sequence[Path], place: tuple[Path, str | None], options: Mapping[str, Any]
) -> Path:
    """Checks what is asked of a network's export; returns the folder to write, BASE/NAME.

    Args:
        format: that of `--format`.
        runs: the one run, or all models of a run on several tasks.
        place: BASE, and the name that was given or None.
        options: options of SavedModels, with None where they were not given.

    Raises:
        ValueError: the format is unknown, or has no such option or task.
        FileExistsError: the folder is there already.
        ImportError: the format's package is not installed.
    """
    from kbert.cli.actions.model_kinds import check_model, task_of
    from kbert.serving.format.version_folders import model_name, new_version
    from kbert.serving.portable.onnx_graph import import_onnx

    if format not in FORMATS:
        near = nearest(format, FORMATS)
        known = ", ".join(FORMATS)
        raise ValueError(f"`--format` must be one of {known}. Received: {format!r}.{near}")
    for option, value in options.items():
        if value is None or (option, value) == ("--precision", _FLOATS):
            continue
        why = "a network is float32 (ONNX Runtime's `quantize_dynamic` makes int8 of it)"
        if option != "--precision":
            why = "a network is one model without versions"
        given = ", ".join(map(str, value)) if isinstance(value, list) else value
        raise ValueError(
            f"`{option}` must be left out with `--format {format}`: {why}. Received: {given}"
        )
    if len(runs) > 1:
        raise ValueError(
            f"`RUN` must be one model for `--format {format}`, such as {runs[0]}. Received: a run "
            f"on the tasks {', '.join(run.name for run in runs)}"
        )
    run, (base, name) = runs[0], place
    check_model(run, exports=False)
    if run.suffix != ".keras" and task_of(run) in _REFUSED[format]:
        raise ValueError(
            f"`RUN` must be of another task for `--format {format}`. "
            f"Received: {run}, of {task_of(run)}, which searches word by word"
        )
    if format == ONNX:
        import_onnx()
    target = new_version(base, model_name(run) if name is None else name)[0].parent
    if target.exists():
        raise FileExistsError(f"`BASE/NAME` must not be there yet. Received: {target}")
    return target
