"""`kbert export`."""

import json
import re
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from kbert.cli.show.errors import reported
from kbert.cli.show.json_output import write_result
from kbert.data.tables.table import nearest
from kbert.serving.format.metadata import PRECISIONS

_Run = Annotated[Path, typer.Argument(help="A run, or a model's folder.", metavar="RUN")]
_Base = Annotated[Path, typer.Argument(help="The folder of all exports.", metavar="BASE")]
_Name = Annotated[
    Optional[str],
    typer.Option(help="The model's name for the server; by default that of its folder."),
]
_Version = Annotated[
    Optional[int], typer.Option(help="Its version; by default the next free one.")
]
_MaxBatchSize = Annotated[
    int, typer.Option(help="The most rows of a batch of the server's; 0 for no batching.")
]
_Keep = Annotated[
    Optional[int], typer.Option(help="How many of the newest versions stay; by default all.")
]
_Precision = Annotated[
    Optional[str],
    typer.Option(
        help="float32, bfloat16 (half the size, and faster where the processor has it) or int8 "
        "(a quarter of the size, slower); by default that of the model.",
    ),
]
_With = Annotated[
    Optional[list[Path]],
    typer.Option(
        "--with",
        help="Another run with the same frozen encoder: its task goes into the same export, under "
        "the name of its folder; may be given several times.",
    ),
]
_Measure = Annotated[
    Optional[Path],
    typer.Option(help="Labelled examples: measure float32 and the precision, for the card."),
]


@reported
def export(
    run: _Run,
    base: _Base,
    name: _Name = None,
    version: _Version = None,
    max_batch_size: _MaxBatchSize = 32,
    keep: _Keep = None,
    precision: _Precision = None,
    also: _With = None,
    measure: _Measure = None,
) -> None:
    """Write a SavedModel that answers raw strings.

    TensorFlow Serving and `kbert predict` take it. It becomes
    BASE/NAME/VERSION, where NAME is that of the run's folder, checked before
    it appears there, with what a server needs besides; BASE/README.md tells
    how to start one. The result on stdout is JSON.

    Examples:

      kbert export runs/topics exports

      kbert export runs/topics exports --name support --keep 3

      kbert export runs/topics exports --precision bfloat16 --measure test.tsv

      kbert export runs/topics exports --with runs/names --with runs/answers
    """
    _look_first([run, *(also or [])], (base, name, version), precision, measure)
    from kbert.serving.export.export import export as write_export
    from kbert.serving.format.signatures import read_meta_graph, signatures_of
    from kbert.serving.format.version_folders import model_name
    from kbert.training.runs.load_model import load_model

    settings: dict[str, Any] = {"version": version, "max_batch_size": max_batch_size, "keep": keep}
    if also:
        path = _exported_together([run, *also], base, name or "tasks", precision, settings)
        measured = None
    else:
        model = load_model(run)
        about, measured = _about(run), _measured(model, run, measure, precision)
        if measured is not None:
            about = {**(about or {}), "precisions": measured}
        named = model_name(run) if name is None else name
        path = write_export(model, base, named, about=about, precision=precision, **settings)
    signatures = signatures_of(read_meta_graph(path))
    write_result(
        {
            "export": str(path),
            "signatures": {
                key: {
                    "inputs": {k: tensor.as_json() for k, tensor in signature.inputs.items()},
                    "outputs": {k: tensor.as_json() for k, tensor in signature.outputs.items()},
                }
                for key, signature in signatures.items()
            },
            **({} if measured is None else {"measured": measured}),
        }
    )


def _look_first(
    runs: list[Path],
    place: tuple[Path, str | None, int | None],
    precision: str | None,
    measure: Path | None,
) -> None:
    """Checks the options before TensorFlow is imported."""
    from kbert.cli.models.model_kinds import check_model
    from kbert.serving.format.version_folders import new_version
    from kbert.training.first_look import check_file

    if len(runs) > 1 and measure is not None:
        raise ValueError("`--measure` must not be given together with `--with`.")
    for run in runs:
        check_model(run, exports=False)
    _named(runs)
    base, name, version = place
    if base.exists() and not base.is_dir():
        raise NotADirectoryError(f"`BASE` must be a folder. Received a file: {base}")
    if name is not None:
        new_version(base, name, version)
    if precision is not None and precision not in PRECISIONS:
        raise ValueError(
            f"`--precision` must be one of {', '.join(PRECISIONS)}. Received: {precision!r}."
            f"{nearest(precision, PRECISIONS)}"
        )
    if measure is not None:
        check_file("--measure", measure)


def _exported_together(
    runs: list[Path], base: Path, name: str, precision: str | None, settings: dict[str, Any]
) -> Path:
    """Exports several runs into one export, each under the name of its folder."""
    from kbert.serving.export.multi_task_export import export_together
    from kbert.training.runs.load_model import load_model

    models = {task: load_model(run) for task, run in _named(runs).items()}
    return export_together(models, base, name, precision=precision, **settings)


def _named(runs: list[Path]) -> dict[str, Path]:
    """Returns the runs by the names of their tasks."""
    named: dict[str, Path] = {}
    for run in runs:
        # A valid name of a signature: minilm-squad becomes minilm_squad.
        task = re.sub(r"[^A-Za-z0-9_]", "_", run.resolve().name)
        if task in named:
            raise ValueError(
                "`--with` must be runs whose folders have different names, which become those of "
                f"the tasks. Received: {named[task]} and {run}"
            )
        named[task] = run
    return named


def _measured(
    model: Any, run: Path, file: Path | None, precision: str | None
) -> dict[str, Any] | None:
    """Measures float32 and the chosen precision on labelled examples."""
    if file is None:
        return None
    from kbert.cli.results.precision_measures import measure_precisions

    return measure_precisions(model, run, file, list(dict.fromkeys(("float32", precision))))


def _about(run: Path) -> dict[str, Any] | None:
    """Returns the export card's facts of the training: names of files, without folders."""
    from kbert.training.runs.run_directory import REPORT, is_run, load_run

    if not is_run(run):
        return None
    report = json.loads((run / REPORT).read_text(encoding="utf-8"))
    metrics = load_run(run).metrics.get("final") or {}
    return {
        "data": [
            {
                "part": part,
                "examples": one["count"],
                "source": ", ".join(Path(name).name for name in str(one["source"]).split(", ")),
            }
            for part, one in (report.get("examples") or {}).items()
        ],
        "metrics": {
            part: {name: value for name, value in values.items() if isinstance(value, int | float)}
            for part, values in metrics.items()
            if isinstance(values, dict)
        },
    }
