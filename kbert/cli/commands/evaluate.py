"""`kbert evaluate`."""

import os
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from kbert.cli.frame.errors import reported
from kbert.cli.frame.results import write_result
from kbert.tasks.finetuned_task import TFDS, FinetunedTask
from kbert.tasks.registry import FINETUNED, finetuned_task
from kbert.training.config.captioning_config import TASK as CAPTIONING
from kbert.training.config.multi_task_config import TASK as MULTI_TASK
from kbert.training.config.translation_config import TASK as TRANSLATION

_PANEL = "Translation"
_Paths = Annotated[
    list[Path],
    Argument(help="One run (or more with --average), then the file.", metavar="RUN... FILE"),
]
_Submission = Annotated[
    Path | None, Option(help="Folder for the file that the GLUE server takes; with --split test.")
]
_Predictions = Annotated[
    Path | None, Option(help="Of question answering: write the official predictions file there.")
]
_Separator = Annotated[
    str | None, Option(help="Of several labels a text: what stands between them, by default |.")
]
_Tuned = Annotated[
    Path | None,
    Option(
        help="Of several labels a text: tune the threshold of each label on the file, and write "
        "the model with them to this folder."
    ),
]
_Source = Annotated[
    Path | None, Option(help="Sentences, one a line, not a file of both.", rich_help_panel=_PANEL)
]
_Target = Annotated[Path | None, Option(help="Their right translations.", rich_help_panel=_PANEL)]
_SourceColumn = Annotated[
    str | None, Option(help="Column of the sentences in a file of both.", rich_help_panel=_PANEL)
]
_TargetColumn = Annotated[
    str | None, Option(help="Column of the translations there.", rich_help_panel=_PANEL)
]
_Language = Annotated[
    str | None,
    Option(
        help="Of the translations, such as de: adds the tokenised lower-cased BLEU.",
        rich_help_panel=_PANEL,
    ),
]
_Translations = Annotated[
    Path | None, Option(help="Write the translations there.", rich_help_panel=_PANEL)
]

_OF_IMAGES = "Captions"
_Images = Annotated[
    Path | None,
    Option(
        help="Folder of the images; by default that of the run's training.",
        rich_help_panel=_OF_IMAGES,
    ),
]
_Captions = Annotated[
    Path | None,
    Option(help="Write the captions there, as JSON Lines.", rich_help_panel=_OF_IMAGES),
]


@reported
def evaluate(
    paths: _Paths,
    glue: Annotated[str | None, Option(help="Measure on this GLUE task, not on a file.")] = None,
    data: Annotated[Path | None, Option(help="Folder of GLUE.")] = None,
    split: Annotated[str | None, Option(help="Split of the GLUE task, by default dev.")] = None,
    submission: _Submission = None,
    average: Annotated[bool, Option(help="Take the mean of the runs' predictions.")] = False,
    text_a: Annotated[str | None, Option(help="Column of the text.")] = None,
    text_b: Annotated[str | None, Option(help="Column of the second text.")] = None,
    label: Annotated[str | None, Option(help="Column of the label.")] = None,
    label_separator: _Separator = None,
    tune_thresholds: _Tuned = None,
    predictions: _Predictions = None,
    source: _Source = None,
    target: _Target = None,
    source_column: _SourceColumn = None,
    target_column: _TargetColumn = None,
    language: _Language = None,
    translations: _Translations = None,
    images: _Images = None,
    captions: _Captions = None,
) -> None:
    """Measure a trained model on labelled examples.

    The metrics are those of its task, the official ones where there
    are such, on stdout as JSON. Columns are by default the run's own.

    Examples:

      kbert evaluate runs/topics test.tsv
      kbert evaluate runs/sst2 --glue sst2 --data glue/ --split test \\
          --submission upload/
      kbert evaluate runs/rte/seed-1 runs/rte/seed-2 dev.tsv --average
      kbert evaluate runs/squad dev-v2.0.json --predictions answers.json
      kbert evaluate runs/toxic validation.csv --tune-thresholds toxic
      kbert evaluate runs/en-de --source test.en --target test.de
      kbert evaluate runs/captions captions.csv --images photos/
      kbert evaluate runs/papers held-out.txt
    """
    sides, of_glue = (source, target), (glue, data, split or "dev")
    runs, file = _divided(paths, any(sides), (glue, data, split, submission), average)
    given = {"text_a": text_a, "text_b": text_b, "label": label}
    targets = (predictions, translations, captions)
    task, own = _look_first(runs, file, sides, of_glue, given, targets)
    given |= _of_labels(own, label_separator, tune_thresholds)
    written, columns = (language, translations), (source_column, target_column)
    translated = _check_written(task, file, any(sides), written, columns, (images, captions))
    from kbert.cli.actions import evaluation
    if translated:
        result = evaluation.evaluate_translation(runs, file, sides, *written, columns)
    elif file is None or (own and own.averages):
        result = evaluation.evaluate_runs(runs, file, of_glue, given, submission, tune_thresholds)
        evaluation.show_labels(result.get("metrics", {}))
    elif own:
        result = evaluation.evaluate_reading(runs, file, given, predictions)
    elif task == CAPTIONING:
        result = evaluation.evaluate_captioning(runs, file, images, captions)
    else:
        result = evaluation.evaluate_pretraining(runs, file)
    write_result(result)


def _check_written(
    task: str | None, file: Path | None, of_sides: bool, *options: tuple[Any, Any]
) -> bool:
    """Checks the options of models that write texts, translators and captioners.

    Returns whether it is a translator.
    """
    (language, translations), columns, (images, captions) = options
    translated = of_sides or task == TRANSLATION
    if (language or translations) and not translated:
        raise ValueError("`--language` and `--translations` must be given for a translator only.")
    if any(columns) and (task != TRANSLATION or str(file).startswith(TFDS)):
        raise ValueError(
            "`--source-column` and `--target-column` must be given for a translator and a file of "
            "both only."
        )
    if (images or captions) and task != CAPTIONING:
        raise ValueError("`--images` and `--captions` must be given for a captioner only.")
    return translated


def _check_targets(*files: Path | None) -> None:
    """Checks the files to write, before models are asked for hours."""
    for option, file in zip(("--predictions", "--translations", "--captions"), files, strict=True):
        if file is None:
            continue
        if file.is_dir():
            raise IsADirectoryError(f"`{option}` must be a file. Received: {file}, a folder")
        folder = next(parent for parent in file.absolute().parents if parent.is_dir())
        if not os.access(folder, os.W_OK):
            raise ValueError(f"`{option}` must be in a folder to write in. Received: {file}")


def _look_first(
    runs: list[Path],
    file: Path | None,
    sides: tuple[Path | None, Path | None],
    glue: tuple[str | None, Path | None, str],
    columns: dict[str, str | None],
    targets: tuple[Path | None, Path | None, Path | None],
) -> tuple[str | None, FinetunedTask | None]:
    """Checks the options before TensorFlow is imported; returns the task of a file, if any."""
    from kbert.cli.actions.model_kinds import check_model, columns_of, task_of
    from kbert.data.classification.glue_tasks import check_glue
    from kbert.training.run import check_file, check_table

    for run in runs:
        check_model(run, exports=False)
    for option, path in (("--source", sides[0]), ("--target", sides[1])):
        if path is not None:
            check_file(option, path)
    task = None if file is None else task_of(runs[0])
    own = finetuned_task(task) if task in FINETUNED else None
    if task == MULTI_TASK:
        raise ValueError(
            f"`RUN` must be of one task: {runs[0]}/model has a folder for each. Received: {runs[0]}"
        )
    read = own.columns if own else ()
    unread = [name for name, value in columns.items() if value is not None and name not in read]
    if unread:
        option = f"--{unread[0].replace('_', '-')}"
        of_what = f"for {task}" if task else "with --glue" if glue[0] else "with --source"
        raise ValueError(
            f"`{option}` must be left out {of_what}, whose columns have fixed names. "
            f"Received: {columns[unread[0]]}"
        )
    if glue[0] is not None and glue[1] is not None:
        check_glue(glue[0], glue[1], glue[2])
    _check_targets(*targets)
    if targets[0] is not None and not (own and own.has_answer_file):
        raise ValueError("`--predictions` must be given for a run of question answering only.")
    if file is not None and not (task == TRANSLATION and str(file).startswith(TFDS)):
        check_file("FILE", file)
        if own is not None:
            check_table(own.name, str(file), columns_of(runs[0], columns))
    return task, own


def _of_labels(
    task: FinetunedTask | None, separator: str | None, tuned: Path | None
) -> dict[str, str | None]:
    """Checks options of several labels a text, and returns the one that says how to read them."""
    if task is None or not task.has_thresholds:
        for option, value in (("--label-separator", separator), ("--tune-thresholds", tuned)):
            if value is not None:
                raise ValueError(
                    f"`{option}` must be given for several labels a text, in a file, only. "
                    f"Received: {str(value)!r}"
                )
        return {}
    if tuned is not None and tuned.exists():
        raise FileExistsError(
            f"`--tune-thresholds` must be a new folder. Received: {str(tuned)!r}, which exists"
        )
    return dict.fromkeys(task.reading, separator)


def _divided(
    paths: list[Path],
    of_pairs: bool,
    of_glue: tuple[str | None, Path | None, str | None, Path | None],
    average: bool,
) -> tuple[list[Path], Path | None]:
    """Returns the runs and the file among the arguments."""
    glue, data, split, submission = of_glue
    for option, given in (("--data", data), ("--split", split), ("--submission", submission)):
        if glue is None and given is not None:
            raise ValueError(
                f"`{option}` must be given together with `--glue`. Received: no task, and {given}"
            )
    if glue is not None and submission is not None:
        from kbert.data.classification.glue_tasks import glue_task, submission_name

        submission_name(glue_task(glue), split or "dev")
    if of_pairs:
        if glue is not None:
            raise ValueError("`--glue` must be left out with `--source` and `--target`.")
        if (last := paths[-1]).is_file() and last.suffix != ".keras" and len(paths) > 1:
            raise ValueError(
                f"`FILE` must be left out with `--source` and `--target`. Received: {last}"
            )
        return paths, None
    runs, file = (paths[:-1], paths[-1]) if glue is None else (paths, None)
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
