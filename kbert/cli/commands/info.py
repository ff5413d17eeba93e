"""`kbert info` and `kbert doctor`: what a folder holds, and what is installed."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit

from kbert.cli.frame.command import shipped_names
from kbert.cli.frame.errors import FAILURE, reported
from kbert.cli.frame.results import write_report, write_result
from kbert.training.runs.run_directory import tell_stage


@reported
def info(
    path: Annotated[
        str,
        Argument(
            help="A run, an export, a checkpoint, or a published name.",
            metavar="RUN_OR_EXPORT_OR_CHECKPOINT",
            autocompletion=shipped_names,
        ),
    ],
) -> None:
    """Tell what a folder holds: a run, an export or a checkpoint.

    The result on stdout is JSON.

    Examples:

      kbert info runs/topics

      kbert info exports/topics

      kbert info all-MiniLM-L6-v2
    """
    from kbert.checkpoints.captioning_folder import is_captioning
    from kbert.cli.actions.model_kinds import check_model, is_export, is_translator, local_path
    from kbert.training.runs.run_directory import is_run

    check_model(path)
    path = str(local_path(path))
    kinds = (
        *((is_run, _of_run), (is_export, _of_export), (is_translator, _of_translation)),
        (is_captioning, _of_captioning),
    )
    about = next((about for is_kind, about in kinds if is_kind(path)), _of_checkpoint)
    write_result(about(path))


@reported
def doctor() -> None:
    """Tell what is installed, and try whether a model answers.

    Versions, extras, devices, the processor's instructions, free memory
    and disk; then a model that comes with kbert answers a question,
    within about ten seconds. Nothing is downloaded. The list is on
    stderr; where stdout goes elsewhere than that, and to no terminal,
    the result is JSON there too, for bug reports. Exit code 1 means
    that something is broken.

    Example:

      kbert doctor > doctor.json
    """
    tell_stage("loading TensorFlow")
    from kbert.cli.actions.doctor import diagnosis, shown

    report = diagnosis()
    write_report(shown(report), report)
    if not report["ok"]:
        raise Exit(FAILURE)


def _of_run(path: str) -> dict[str, Any]:
    from kbert.storage.json_files import read_json_object
    from kbert.training.runs.run_directory import REPORT, load_run

    run = load_run(path)
    report = read_json_object(Path(path) / REPORT)
    metrics = {k: v for k, v in run.metrics.items() if k not in ("epochs", "intervals")}
    return {"kind": "run", "config": run.config.to_dict(), "report": report, "metrics": metrics}


def _of_export(path: str) -> dict[str, Any]:
    from kbert.serving.format.servable import check_export
    from kbert.serving.format.version_folders import read_metadata

    report = check_export(path)
    return {
        "kind": "export",
        "path": str(report.path),
        **read_metadata(report.path),
        "servable": report.is_servable,
        "problems": list(report.problems),
        "text_ops": list(report.text_ops),
        "bytes": report.variable_bytes + report.other_bytes,
    }


def _of_translation(path: str) -> dict[str, Any]:
    from kbert.checkpoints.marian_files import read_marian
    from kbert.checkpoints.marian_subwords import piece_count
    from kbert.checkpoints.read_checkpoint import is_marian
    from kbert.checkpoints.translation_folder import read_translation

    of_marian = is_marian(path)
    found = read_marian(path) if of_marian else read_translation(path)
    arrays = [*found.arrays.values(), *(found.bert.arrays.values() if found.bert else ())]
    return {
        "kind": "checkpoint",
        "format": "marian" if of_marian else "kbert",
        "architecture": found.architecture,
        "config": found.transformer,
        "bert": found.bert.config if found.bert else None,
        "task": {"class": "Translator", **found.settings},
        "parameters": sum(int(array.size) for array in arrays),
        "dtypes": sorted({str(array.dtype) for array in arrays}),
        "subwords": {
            "source": piece_count(found.source_subwords),
            "target": piece_count(found.target_subwords),
            "joint": found.source_subwords == found.target_subwords,
        },
    }


def _of_captioning(path: str) -> dict[str, Any]:
    from kbert.checkpoints.captioning_folder import read_captioning
    from kbert.checkpoints.marian_subwords import piece_count

    found = read_captioning(path)
    arrays = [*found.decoder_arrays.values(), *found.extractor_arrays.values()]
    return {
        "kind": "checkpoint",
        "format": "kbert",
        "architecture": found.architecture,
        "config": found.decoder,
        "task": {"class": "Captioner", **found.settings},
        "parameters": sum(int(array.size) for array in arrays),
        "network_parameters": sum(int(array.size) for array in found.extractor_arrays.values()),
        "dtypes": sorted({str(array.dtype) for array in arrays}),
        "subwords": piece_count(found.subwords),
    }


def _of_checkpoint(path: str) -> dict[str, Any]:
    from kbert.checkpoints.read_checkpoint import read_checkpoint

    checkpoint = read_checkpoint(path, values=False)
    arrays = {**checkpoint.arrays, **checkpoint.heads, **checkpoint.adapters}
    arrays |= checkpoint.features.get("arrays", {})
    return {
        "kind": "checkpoint",
        "format": checkpoint.format,
        "architecture": checkpoint.architecture,
        "config": checkpoint.config,
        "task": checkpoint.pipeline,
        "parameters": sum(int(array.size) for array in arrays.values()),
        "dtypes": sorted({str(array.dtype) for array in arrays.values()}),
        "heads": {name: list(array.shape) for name, array in checkpoint.heads.items()},
        "vocabulary": checkpoint.has_vocabulary,
        "lowercase": checkpoint.lowercase,
        "notes": checkpoint.report,
    }
