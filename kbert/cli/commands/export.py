"""`kbert export`, and `kbert check`, which tells whether a server can run an export."""

import re
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option, echo

from kbert.cli.actions.portable_formats import SAVED_MODEL, check_portable
from kbert.cli.frame.command import RunArgument
from kbert.cli.frame.errors import FAILURE, reported
from kbert.cli.frame.results import write_report, write_result
from kbert.hints import nearest
from kbert.serving.format.version_folders import PRECISIONS
from kbert.training.runs.run_directory import tell_stage, training_facts

_MAX_BATCH_SIZE = 32

_Name = Annotated[
    str | None, Option(help="The model's name for the server; by default that of its folder.")
]
_Version = Annotated[int | None, Option(help="Its version; by default the next free one.")]
_MaxBatchSize = Annotated[
    int,
    Option(min=0, help="The most rows of a batch that the graph makes of requests; 0 for none."),
]
_Keep = Annotated[
    int | None, Option(min=1, help="How many of the newest versions stay; by default all.")
]
_Precision = Annotated[
    str | None,
    Option(
        help="float32, bfloat16 (half the size, and faster where the processor has it) or int8 "
        "(a quarter of the size; products are of integers, on x86 only); by default that of "
        "the model.",
    ),
]
_Format = Annotated[
    str,
    Option(
        help="savedmodel takes texts, in TensorFlow Serving; onnx and litert are networks that "
        "take token ids, in ONNX Runtime or on phones.",
    ),
]
_Frozen = Annotated[
    bool,
    Option(
        "--frozen",
        help="Weights of an encoder or a translator's search are constants of the graph: short "
        "texts are answered sooner, for more memory.",
    ),
]
_With = Annotated[
    list[Path] | None,
    Option(
        "--with",
        help="Another run with the same frozen encoder: its task goes into the same export, under "
        "the name of its folder; may be given several times.",
    ),
]
_Measure = Annotated[
    Path | None, Option(help="Labelled examples: measure float32 and the precision, for the card.")
]
_Shortlist = Annotated[
    tuple[Path, Path] | None,
    Option(
        metavar="SOURCE TARGET",
        help="Sentences and their translations, such as those of the training: a translator then "
        "takes only pieces that translate one of the source there, which is faster.",
    ),
]


@reported
def export(
    run: RunArgument,
    base: Annotated[Path, Argument(help="The folder of all exports.", metavar="BASE")],
    name: _Name = None,
    version: _Version = None,
    max_batch_size: _MaxBatchSize = _MAX_BATCH_SIZE,
    keep: _Keep = None,
    precision: _Precision = None,
    also: _With = None,
    measure: _Measure = None,
    format: _Format = SAVED_MODEL,
    frozen: _Frozen = False,
    shortlist: _Shortlist = None,
) -> None:
    """Write a SavedModel that answers raw strings, or a network for other runtimes.

    TensorFlow Serving and `kbert predict` take it. It becomes
    BASE/NAME/VERSION, where NAME is that of the run's folder, checked before
    it appears there, with what a server needs besides; BASE/README.md tells
    how to start one. With another format it becomes BASE/NAME, with the
    tokenizer's file beside the network. The result on stdout is JSON.

    Examples:

      kbert export runs/topics exports

      kbert export runs/topics exports --name support --keep 3

      kbert export runs/topics exports --precision bfloat16 --measure test.tsv

      kbert export runs/topics exports --frozen

      kbert export runs/topics exports --with runs/names --with runs/answers

      kbert export runs/multi-task exports

      kbert export runs/de-en exports --shortlist train.de train.en

      kbert export runs/topics networks --format onnx
    """
    if format == SAVED_MODEL:
        settings: dict[str, Any] = {"frozen": frozen, "shortlist": shortlist}
        settings |= {"version": version, "max_batch_size": max_batch_size, "keep": keep}
        _write_saved_model([run, *(also or [])], (base, name), settings, precision, measure)
        return
    rows = None if max_batch_size == _MAX_BATCH_SIZE else max_batch_size
    options: dict[str, Any] = {"--version": version, "--max-batch-size": rows, "--keep": keep}
    options |= {"--precision": precision, "--with": also, "--measure": measure}
    options |= {"--frozen": frozen or None, "--shortlist": shortlist}
    target = check_portable(format, models_of([run]), (base, name), options)
    from kbert.cli.actions.portable_export import export_portable

    write_result({"export": str(export_portable(format, run, target, training_facts(run)))})


def _write_saved_model(
    given: list[Path],
    place: tuple[Path, str | None],
    settings: dict[str, Any],
    precision: str | None,
    measure: Path | None,
) -> None:
    from kbert.serving.format.version_folders import model_name

    (run, *also), (base, name) = given, place
    if name is None:
        name = "tasks" if also else model_name(run)
    runs = _look_first(models_of(given), (base, name, settings["version"]), precision, measure)
    frozen, shortlist = settings.pop("frozen"), settings.pop("shortlist")
    if shortlist is not None:
        _check_shortlist(list(runs.values()), shortlist)
    if frozen and len(runs) > 1:
        raise ValueError(
            f"`--frozen` must not be given for several tasks in one export. Received: {len(runs)}"
        )
    from kbert.cli.actions.precision_measures import measure_precisions
    from kbert.data.translation.parallel_text import read_parallel
    from kbert.serving.export.export import export as write_export
    from kbert.serving.export.multi_task_export import export_together
    from kbert.training.runs.load_model import load_model

    settings["precision"] = precision
    texts = None if shortlist is None else read_parallel(*shortlist)  # fails before loading
    measured: dict[str, Any] = {}
    if len(runs) > 1:
        models = {task: load_model(one) for task, one in runs.items()}
        path = export_together(models, base, name, **settings)
    else:
        model, about = load_model(run), training_facts(run)
        if texts is not None:
            model.learn_shortlist(texts.sources, texts.targets)
        if measure is not None:
            both = list(dict.fromkeys(("float32", precision)))
            measured = {"measured": measure_precisions(model, run, measure, both, frozen)}
            about = {**(about or {}), "precisions": measured["measured"]}
        path = write_export(model, base, name, about=about, frozen=frozen, **settings)
    write_result({"export": str(path), "signatures": _signatures(path), **measured})
    echo(f"Try: kbert predict {path.parent} ...; to serve it: {base / 'README.md'}", err=True)


def models_of(runs: list[Path]) -> list[Path]:
    """Returns the runs, in the place of one on several tasks the models of these."""
    from kbert.training.config.multi_task_config import TASK
    from kbert.training.runs.run_directory import is_run, load_run

    found = []
    for run in runs:
        opened = load_run(run) if is_run(run) else None
        if opened is None or opened.config.task != TASK:
            found.append(run)
            continue
        found += [opened.model_directory / name for name in opened.config.to_dict()["tasks"]]
    return found


def _look_first(
    runs: list[Path],
    target: tuple[Path, str, int | None],
    precision: str | None,
    measure: Path | None,
) -> dict[str, Path]:
    """Checks the options before TensorFlow is imported; returns the runs by their tasks' names."""
    from kbert.cli.actions.model_kinds import check_measured, check_model
    from kbert.serving.format.version_folders import new_version

    if len(runs) > 1 and measure is not None:
        raise ValueError("`--measure` must not be given together with `--with`.")
    named: dict[str, Path] = {}
    for place, run in enumerate(runs):
        check_model(run, exports=False, argument="--with" if place else "RUN")
        # A valid name of a signature: minilm-squad becomes minilm_squad.
        task = re.sub(r"[^A-Za-z0-9_]", "_", run.resolve().name)
        if task in named:
            raise ValueError(
                "`--with` must be runs whose folders have different names, which become those of "
                f"the tasks. Received: {named[task]} and {run}"
            )
        named[task] = run
    base, name, version = target
    if base.exists() and not base.is_dir():
        raise NotADirectoryError(f"`BASE` must be a folder. Received a file: {base}")
    new_version(base, name, version)
    if precision is not None and precision not in PRECISIONS:
        raise ValueError(
            f"`--precision` must be one of {', '.join(PRECISIONS)}. Received: {precision!r}."
            f"{nearest(precision, PRECISIONS)}"
        )
    if measure is not None:
        check_measured(runs[0], measure)
    return named


def _check_shortlist(runs: list[Path], files: tuple[Path, Path]) -> None:
    from kbert.cli.actions.model_kinds import is_translator, local_path
    from kbert.training.run import check_file
    from kbert.training.runs.run_directory import model_of

    if len(runs) > 1 or not is_translator(local_path(model_of(runs[0]))):
        raise ValueError(
            "`--shortlist` must be given for a translator, and for one alone. "
            f"Received: {', '.join(map(str, runs))}"
        )
    for file in files:
        check_file("--shortlist", file)


def _signatures(path: Path) -> dict[str, Any]:
    from kbert.serving.format.signatures import read_meta_graph, signatures_of

    def shown(tensors: dict[str, Any]) -> dict[str, Any]:
        return {name: tensor.as_json() for name, tensor in tensors.items()}

    return {
        key: {"inputs": shown(signature.inputs), "outputs": shown(signature.outputs)}
        for key, signature in signatures_of(read_meta_graph(path)).items()
    }


@reported
def check(
    export: Annotated[Path, Argument(help="BASE/NAME, or BASE/NAME/VERSION.", metavar="EXPORT")],
    server: Annotated[
        str | None,
        Option(help="The server's version; by default that of the exporting TensorFlow."),
    ] = None,
    run: Annotated[
        bool, Option("--run/--no-run", help="Run its requests too, or read the files alone.")
    ] = True,
    strict: Annotated[
        bool, Option("--strict", help="A check that cannot be made counts as failed.")
    ] = False,
) -> None:
    """Tell whether TensorFlow Serving can run an export.

    Its files are read, its warm-up and golden requests are run in Python
    and, where gcc is there, by TensorFlow's C++ loader, and the answers
    are compared. The list on stderr is for people; where stdout goes
    elsewhere than that, and to no terminal, the result is JSON there.
    The exit code is 1 if something is wrong.

    Examples:

      kbert check exports/topics

      kbert check exports/topics/3 --server 2.19 --strict
    """
    from kbert.serving.format.servable import server_number
    from kbert.serving.format.version_folders import find_export

    find_export(export, "EXPORT")
    if server is not None:
        server_number(server)
    tell_stage("loading TensorFlow")
    from kbert.export_check.check import check as check_export

    tell_stage("checking: " + ("the requests of the export are run" if run else "its files alone"))
    report = check_export(export, server, run)
    passed = report.passed(strict)
    lines = (*report.lines(), f"{export}: {'passed' if passed else 'FAILED'}")
    write_report(lines, report.as_json(strict))
    if not passed:
        raise Exit(FAILURE)
