"""Results of `kbert evaluate`: of runs on examples, of readers, pretrained models, translators."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from kbert.cli.models.model_kinds import columns_of, task_of
from kbert.data.classification.glue_submission import write_glue_submission
from kbert.data.classification.glue_tasks import glue_task, read_glue
from kbert.data.pretraining.corpus import Corpus
from kbert.data.questions.squad import write_predictions
from kbert.data.translation.parallel_text import ParallelText, read_parallel
from kbert.storage.atomic_directory import write_atomically
from kbert.tasks.registry import finetuned_task
from kbert.tasks.translation.model import Translator
from kbert.training.config.pretraining_config import TASK as PRETRAINING
from kbert.training.config.translation_config import TASK as TRANSLATION
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.finetuning.ensemble import Averaged, predict_average
from kbert.training.pretraining.model import config_of_model, measure_pretrained
from kbert.training.runs.load_model import load_model
from kbert.training.runs.run_directory import is_run, load_run
from kbert.training.translation.evaluation import measure_translator
from kbert.training.translation.examples import read_table_of_pairs


def read_examples(
    run: Path,
    file: Path | None,
    glue: tuple[str | None, Path | None, str],
    columns: dict[str, str | None],
) -> tuple[Any, str | None]:
    """Reads the examples to evaluate a run on, and the GLUE task whose metrics apply, or None.

    Args:
        run: The first run, or a model's folder.
        file: A file of examples; None with a GLUE task.
        glue: The GLUE task, its folder and the split.
        columns: `text_a`, `text_b` and `label`, by name or index; None for the run's own.
    """
    task, folder, split = glue
    if task is not None and folder is not None:
        return read_glue(task, folder, split), glue_task(task).name
    if file is None:
        raise ValueError("`file` must be given without a GLUE task. Received: file=None")
    measured = finetuned_task(task_of(run))
    return measured.measured_examples(file, columns_of(run, columns)), None


def evaluate_runs(
    runs: list[Path], examples: Any, task: str | None, split: str, submission: Path | None
) -> dict[str, Any]:
    """Evaluates the mean of the runs' predictions, and optionally writes the GLUE server's file.

    Returns facts about the examples from `read_examples`, the metrics if they have labels, the file
    if one was written to the folder `submission`.

    Raises:
        ValueError: The models do not fit the examples; there is neither a label nor a submission;
            or the submission has no GLUE task, no test split or other labels than the model.
    """
    if submission is None and examples.labels is None:
        raise ValueError(
            f"{examples.source}: the examples must have labels to be measured (or give "
            "--submission). Received: none"
        )
    if submission is not None and task is None:
        raise ValueError("`--submission` must be given together with `--glue`. Received: no task")
    averaged = predict_average(runs, examples)
    result = _facts(runs, examples.source, examples)
    if examples.labels is not None:
        kind = averaged.task
        right = kind.targets(examples, averaged.labels)
        numbers = kind.measure_predictions(right, averaged.predictions, averaged.labels, task)
        result["metrics"] = numbers
    if submission is not None and task is not None:
        answers = _glue_answers(averaged)
        file = write_glue_submission(task, answers, submission, examples.ids, split=split)
        result["submission"] = str(file)
    return result


def _glue_answers(averaged: Averaged) -> Any:
    if averaged.labels is None:
        return averaged.predictions.tolist()
    return [averaged.labels[i] for i in averaged.predictions.argmax(axis=-1)]


def show_labels(metrics: dict[str, Any], console: Console | None = None) -> None:
    """Prints the scores of each label, by default to stderr; nothing for metrics without labels."""
    per_class = metrics.get("per_class")
    if not per_class:
        return
    table = Table("label", "precision", "recall", "F1", "examples")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, row in per_class.items():
        numbers = [f"{row[key]:.3f}" for key in ("precision", "recall", "f1")]
        table.add_row(name, *numbers, str(row["support"]))
    table.add_section()
    macro, support = metrics["macro_f1"], sum(row["support"] for row in per_class.values())
    table.add_row("all: accuracy", f"{metrics['accuracy']:.3f}", "", f"{macro:.3f}", str(support))
    (console or Console(stderr=True)).print(table)


def evaluate_reading(
    runs: list[Path], file: Path, label: str | None, predictions: Path | None
) -> dict[str, Any]:
    """Evaluates a model that reads texts in windows, on questions or on tagged sentences.

    `label` is the column of the tags, None for the run's own; `predictions` is the path of the
    official predictions file to write, or None.
    """
    run = _only(runs, "to read")
    task = finetuned_task(task_of(run))
    if predictions is not None and not task.has_answer_file:
        raise ValueError("`--predictions` must be given for a run of question answering only.")
    model = load_model(run)
    examples = task.measured_examples(file, columns_of(run, {"label": label}), model)
    metrics, answers = task.measure(model, examples)
    result = _facts(runs, file)
    if predictions is not None:
        result["predictions"] = str(write_predictions(predictions, answers))
    return {**result, "examples": len(examples), "metrics": metrics}


def evaluate_pretraining(runs: list[Path], file: Path) -> dict[str, Any]:
    """Evaluates a pretrained model on plain text.

    Examples and masks are drawn with the run's seed, the same ones each time.
    """
    folder, config = _only(runs, "pretraining"), None
    if is_run(folder):
        run = load_run(folder)
        folder, config = run.model_directory, run.config
    is_pretraining = getattr(config, "task", None) == PRETRAINING
    own: Any = config if is_pretraining else config_of_model(folder)
    corpus = Corpus([file], own.separator, encoding_errors=own.encoding_errors)
    metrics = measure_pretrained(folder, corpus, own)
    return {**_facts(runs, corpus), "metrics": metrics}


def evaluate_translation(
    runs: list[Path],
    file: Path | None,
    sides: tuple[Path | None, Path | None],
    language: str | None = None,
    translations: Path | None = None,
) -> dict[str, Any]:
    """Evaluates a translator on sentence pairs.

    Args:
        runs: One run, or a model's folder.
        file: A table of pairs, or tfds:NAME@SPLIT; None with `sides`.
        sides: Two text files instead, of sentences and of their translations.
        language: Target language, for the tokenised lower-cased BLEU; None for the run's own.
        translations: File to write all translations to, one per line; or None.
    """
    run = _only(runs, "translation")
    config = load_run(run).config if is_run(run) else None
    own: Any = config if getattr(config, "task", None) == TRANSLATION else None
    pairs = _read_pairs(file, sides, own)
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


def _read_pairs(
    file: Path | None, sides: tuple[Path | None, Path | None], config: TranslationConfig | None
) -> ParallelText:
    source, target = sides
    if file is not None:
        return read_table_of_pairs(file, config)
    if source is None or target is None:
        raise ValueError("`--source` and `--target` must be given together.")
    return read_parallel(source, target)


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
