"""Results of `kbert evaluate`: of runs on examples, of readers, pretrained models, translators."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kbert.cli.actions.model_kinds import columns_of, task_of
from kbert.data.captions.captioned_images import read_captions
from kbert.data.classification.glue_tasks import glue_task, read_glue, write_glue_submission
from kbert.data.pretraining.corpus import Corpus
from kbert.data.questions.squad import write_predictions
from kbert.data.translation.parallel_text import read_parallel
from kbert.storage.files import write_atomically
from kbert.tasks.registry import finetuned_task
from kbert.tasks.translation.model import Translator
from kbert.training.captioning.evaluation import measure_captioner
from kbert.training.config.captioning_config import TASK as CAPTIONING
from kbert.training.config.pretraining_config import TASK as PRETRAINING
from kbert.training.config.translation_config import TASK as TRANSLATION
from kbert.training.pretraining.model import config_of_model, measure_pretrained
from kbert.training.runs.load_model import load_model, predict_average
from kbert.training.runs.run_directory import is_run, load_run
from kbert.training.translation.evaluation import measure_translator
from kbert.training.translation.examples import read_table_of_pairs

_Glue = tuple[str | None, Path | None, str]  # task, folder of GLUE, and split
_Columns = dict[str, str | None]  # text_a, text_b and label, and keys of a task's `reading`
_HEADINGS = {"f1": "F1"}


def read_examples(
    run: Path, file: Path | None, glue: _Glue, columns: _Columns
) -> tuple[Any, str | None]:
    """Reads the examples to evaluate a run on, and the GLUE task whose metrics apply, or None."""
    task, folder, split = glue
    if task is not None and folder is not None:
        return read_glue(task, folder, split), glue_task(task).name
    if file is None:
        raise ValueError("`file` must be given without a GLUE task. Received: file=None")
    measured = finetuned_task(task_of(run))
    return measured.measured_examples(file, columns_of(run, columns)), None


def evaluate_runs(
    runs: list[Path],
    file: Path | None,
    glue: _Glue,
    columns: _Columns,
    submission: Path | None = None,
    tuned: Path | None = None,
) -> dict[str, Any]:
    """Evaluates the mean of the runs' predictions, and optionally writes the GLUE server's file.

    Returns facts about the examples of `read_examples`, the metrics if they have labels, and the
    file, if one was written to the folder `submission`. With `tuned` it is one run, whose model is
    written to that folder with its thresholds tuned on the examples, and measured.
    """
    examples, task = read_examples(runs[0], file, glue, columns)
    if tuned is not None:
        return _tuned(_only(runs, "to be tuned"), examples, tuned)
    if submission is None and examples.labels is None:
        raise ValueError(
            f"{examples.source}: the examples must have labels to be measured (or give "
            "--submission). Received: none"
        )
    averaged = predict_average(runs, examples)
    result = _facts(runs, examples.source, examples)
    if examples.labels is not None:
        result["metrics"] = averaged.measured(examples, task)
    if submission is not None and task is not None:
        answers = averaged.predictions.tolist()
        if averaged.labels is not None:
            answers = [averaged.labels[i] for i in averaged.predictions.argmax(axis=-1)]
        file = write_glue_submission(task, answers, submission, examples.ids, split=glue[2])
        result["submission"] = str(file)
    return result


def _tuned(run: Path, examples: Any, output: Path) -> dict[str, Any]:
    model = load_model(run)
    prepared = finetuned_task(task_of(run)).prepare(model, examples)
    metrics = replace(prepared, is_tuning=True).measured(model)
    model.save_pretrained(output)
    facts = _facts([run], examples.source, examples)
    return {**facts, "model": str(output), "thresholds": model.thresholds, "metrics": metrics}


def show_labels(metrics: dict[str, Any], console: Console | None = None) -> None:
    """Prints the scores of each label, by default to stderr; nothing for metrics without labels."""
    per_class = metrics.get("per_class")
    if not per_class:
        return
    first = next(iter(per_class.values()))
    keys = [key for key in ("threshold", "precision", "recall", "f1") if key in first]
    table = Table("label", *(_HEADINGS.get(key, key) for key in keys), "examples")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, row in per_class.items():
        scores = [f"{row[key]:.3f}" for key in keys]
        table.add_row(Text(name), *scores, str(row["support"]))
    table.add_section()
    support = str(sum(row["support"] for row in per_class.values()))
    macro = f"{metrics['macro_f1']:.3f}"
    if "accuracy" in metrics:
        # Of one label a text, F1 over all texts is the share that is right.
        table.add_row("all: accuracy", "", "", f"{metrics['accuracy']:.3f}", support)
        table.add_row("mean of labels", "", "", macro, "")
    else:
        micro = [f"{metrics[f'micro_{key}']:.3f}" for key in ("precision", "recall", "f1")]
        table.add_row("all together", "", *micro, support)
        table.add_row("mean of labels", "", "", "", macro, "")
        table.add_row("exactly right", "", "", "", f"{metrics['exact_match']:.3f}", "")
    (console or Console(stderr=True)).print(table)


def evaluate_reading(
    runs: list[Path], file: Path, columns: _Columns, predictions: Path | None
) -> dict[str, Any]:
    """Evaluates a model whose predictions have no mean: on questions, tagged sentences, pairs."""
    run = _only(runs, "to read")
    task = finetuned_task(task_of(run))
    model = load_model(run)
    examples = task.measured_examples(file, columns_of(run, columns), model)
    metrics, answers = task.measure(model, examples)
    result = _facts(runs, file)
    if predictions is not None:
        result["predictions"] = str(write_predictions(predictions, answers))
    return {**result, "examples": len(examples), "metrics": metrics}


def evaluate_pretraining(runs: list[Path], file: Path) -> dict[str, Any]:
    """Evaluates a pretrained model on plain text, with examples and masks by the run's seed."""
    folder, config = _only(runs, "pretraining"), None
    if is_run(folder):
        run = load_run(folder)
        folder, config = run.model_directory, run.config
    is_pretraining = getattr(config, "task", None) == PRETRAINING
    own: Any = config if is_pretraining else config_of_model(folder)
    corpus = Corpus(
        [file], own.separator, encoding_errors=own.encoding_errors, argument="FILE"
    )
    metrics = measure_pretrained(folder, corpus, own)
    return {**_facts(runs, corpus), "metrics": metrics}


def evaluate_translation(
    runs: list[Path],
    file: Path | None,
    sides: tuple[Path | None, Path | None],
    language: str | None = None,
    translations: Path | None = None,
    columns: tuple[str | None, str | None] = (None, None),
) -> dict[str, Any]:
    """Evaluates a translator on sentence pairs.

    The pairs are a table or tfds:NAME@SPLIT in `file`, or two text files in `sides`. `language` is
    the target language, for the tokenised lower-cased BLEU; None for the run's own. `translations`
    is the file to write all translations to, one per line, or None; `columns` are those of the
    table, by name or index, None for the run's own.
    """
    run = _only(runs, "translation")
    config = load_run(run).config if is_run(run) else None
    own: Any = config if getattr(config, "task", None) == TRANSLATION else None
    source, target = sides
    if file is not None:
        pairs = read_table_of_pairs(file, own, columns=columns)
    elif source is not None and target is not None:
        pairs = read_parallel(source, target)
    else:
        raise ValueError("`--source` and `--target` must be given together.")
    model = load_model(run)
    if not isinstance(model, Translator):
        raise ValueError(
            "`--source` and `--target` must be given for a translator only. Received: "
            f"{run}, {type(model).__name__}"
        )
    if language is None and own is not None:
        language = own.target_language
    metrics, found = measure_translator(model, pairs, language)
    result = {**_facts(runs, pairs.source, pairs), "metrics": metrics}
    if translations is not None:
        # A model with a piece for a line break could output one, but one line is one sentence.
        lines = [text.replace("\n", " ") + "\n" for text in found]
        write_atomically(translations, "".join(lines))
        result["translations"] = str(translations)
    return result


def evaluate_captioning(
    runs: list[Path], file: Path, images: Path | None, captions: Path | None = None
) -> dict[str, Any]:
    """Evaluates a captioner on images with captions.

    `images` is the folder of the images of the table `file`, by default that of the run's training.
    `captions` is the file to write all captions to, a JSON object a line, or None.
    """
    run = _only(runs, "captioning")
    config = load_run(run).config if is_run(run) else None
    own: Any = config if getattr(config, "task", None) == CAPTIONING else None
    if images is None and own is None:
        raise ValueError("`--images` must be given for a model's folder. Received: none")
    columns = (own.image_column, own.caption_column) if own is not None else ()
    examples = read_captions(file, images or own.images, *columns)
    metrics, found = measure_captioner(load_model(run), examples)
    result = {**_facts(runs, examples.source, examples), "metrics": metrics}
    if captions is not None:
        rows = ({"image": n, "caption": text} for n, text in zip(examples.images, found))
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        write_atomically(captions, "".join(lines))
        result["captions"] = str(captions)
    return result


def _only(runs: list[Path], task: str) -> Path:
    if len(runs) > 1:
        raise ValueError(
            f"`kbert evaluate` must have one run where the task is {task}. "
            f"Received: {', '.join(map(str, runs))}"
        )
    return runs[0]


def _facts(runs: list[Path], source: Any, examples: Any = None) -> dict[str, Any]:
    counted = {} if examples is None else {"examples": len(examples)}
    return {"models": [str(run) for run in runs], "source": str(source), **counted}
