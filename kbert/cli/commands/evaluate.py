"""`kbert evaluate`."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from kbert.cli.commands.verb import reported, write_result
from kbert.tasks.base.task import TFDS
from kbert.tasks.registry import FINETUNED, finetuned_task
from kbert.training.config.pretraining_config import TASK as PRETRAINING
from kbert.training.config.translation_config import TASK as TRANSLATION

_PANEL = "Translation"
_Paths = Annotated[
    list[Path],
    typer.Argument(help="One run (or more with --average), then the file.", metavar="RUN... FILE"),
]
_Glue = Annotated[Optional[str], typer.Option(help="Measure on this GLUE task, not on a file.")]
_Data = Annotated[Optional[Path], typer.Option(help="Folder of GLUE.")]
_Split = Annotated[str, typer.Option(help="Split of the GLUE task.")]
_Submission = Annotated[
    Optional[Path],
    typer.Option(help="Folder for the file that the GLUE server takes; with --split test."),
]
_Average = Annotated[bool, typer.Option(help="Take the mean of the runs' predictions.")]
_Predictions = Annotated[
    Optional[Path],
    typer.Option(help="Of question answering: write the official predictions file there."),
]
_TextA = Annotated[Optional[str], typer.Option(help="Column of the text.")]
_TextB = Annotated[Optional[str], typer.Option(help="Column of the second text.")]
_Label = Annotated[Optional[str], typer.Option(help="Column of the label.")]
_Source = Annotated[
    Optional[Path],
    typer.Option(help="Sentences, one a line, not a file of both.", rich_help_panel=_PANEL),
]
_Target = Annotated[
    Optional[Path], typer.Option(help="Their right translations.", rich_help_panel=_PANEL)
]
_Language = Annotated[
    Optional[str],
    typer.Option(
        help="Of the translations, such as de: adds the tokenised lower-cased BLEU.",
        rich_help_panel=_PANEL,
    ),
]
_Translations = Annotated[
    Optional[Path], typer.Option(help="Write the translations there.", rich_help_panel=_PANEL)
]


@reported
def evaluate(
    paths: _Paths,
    glue: _Glue = None,
    data: _Data = None,
    split: _Split = "dev",
    submission: _Submission = None,
    average: _Average = False,
    text_a: _TextA = None,
    text_b: _TextB = None,
    label: _Label = None,
    predictions: _Predictions = None,
    source: _Source = None,
    target: _Target = None,
    language: _Language = None,
    translations: _Translations = None,
) -> None:
    """Measure a trained model on labelled examples.

    The metrics are those of its task, the official ones where there
    are such. The result on stdout is JSON.
    Columns are by default those that the run was trained with.

    Examples:

      kbert evaluate runs/topics test.tsv

      kbert evaluate runs/sst2 --glue sst2 --data glue/ --split dev

      kbert evaluate runs/sst2 --glue sst2 --data glue/ --split test \\
          --submission upload/

      kbert evaluate runs/rte/seed-1 runs/rte/seed-2 dev.tsv --average

      kbert evaluate runs/squad dev-v2.0.json --predictions answers.json

      kbert evaluate runs/en-de --source test.en --target test.de

      kbert evaluate runs/papers held-out.txt
    """
    of_pairs = source is not None or target is not None
    runs, file = (paths, None) if of_pairs else _divided(paths, glue, data, average)
    given = {"text_a": text_a, "text_b": text_b, "label": label}
    task = _look_first(runs, file, (source, target), (glue, data, split), given)
    translated = of_pairs or task == TRANSLATION
    _check_options(task, predictions, None if translated else language or translations)
    from kbert.cli.results import evaluation

    if translated:
        pair = (source, target)
        result = evaluation.evaluate_translation(runs, file, pair, language, translations)
    elif file is not None and _reads(task):
        result = evaluation.evaluate_reading(runs, file, label, predictions)
    elif file is not None and task == PRETRAINING:
        result = evaluation.evaluate_pretraining(runs, file)
    else:
        examples, glue_name = evaluation.read_examples(runs[0], file, (glue, data, split), given)
        result = evaluation.evaluate_runs(runs, examples, glue_name, split, submission)
        evaluation.show_labels(result.get("metrics", {}))
    write_result(result)


def _look_first(
    runs: list[Path],
    file: Path | None,
    sides: tuple[Path | None, Path | None],
    glue: tuple[str | None, Path | None, str],
    columns: dict[str, str | None],
) -> str | None:
    """Checks names and columns before TensorFlow is imported; returns the task of a file."""
    from kbert.cli.models.model_kinds import check_model, columns_of, task_of
    from kbert.training.first_look import check_file, check_glue, check_table

    for run in runs:
        check_model(run, exports=False)
    for option, path in (("--source", sides[0]), ("--target", sides[1])):
        if path is not None:
            check_file(option, path)
    if glue[0] is not None and glue[1] is not None:
        check_glue(glue[0], glue[1], glue[2])
    if file is None:
        return None
    task = task_of(runs[0])
    if not str(file).startswith(TFDS):
        check_file("FILE", file)
        if task in FINETUNED:
            check_table(task, str(file), columns_of(runs[0], columns))
    return task


def _check_options(task: str | None, predictions: Path | None, of_translators: object) -> None:
    """Raises a ValueError for options of other tasks."""
    if of_translators is not None:
        raise ValueError("`--language` and `--translations` must be given for a translator only.")
    if predictions is not None and not _reads(task):
        raise ValueError("`--predictions` must be given for a run of question answering only.")


def _reads(task: str | None) -> bool:
    """Returns whether a task combines answers of windows, so that models cannot be averaged."""
    return task in FINETUNED and not finetuned_task(task).averages


def _divided(
    paths: list[Path], glue: str | None, data: Path | None, average: bool
) -> tuple[list[Path], Path | None]:
    """Returns the runs and the file among the arguments."""
    file = None if glue is not None else paths[-1]
    runs = paths if glue is not None else paths[:-1]
    if not runs:
        raise ValueError(
            f"`kbert evaluate` must have a run and then a file (or --glue). Received: {paths[0]}"
        )
    if glue is not None and data is None:
        raise ValueError("`--data` must be the folder of GLUE with `--glue`. Received: none")
    if len(runs) > 1 and not average:
        raise ValueError(
            f"`--average` must be given for several runs. Received: {', '.join(map(str, runs))}"
        )
    return runs, file
