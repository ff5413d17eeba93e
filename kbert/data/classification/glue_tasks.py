"""The GLUE tasks: their files, columns and labels as the benchmark ships them, and as its server
takes them.

Sources: gluebenchmark.com (the zip files of each task, and its FAQ); the benchmark's baselines
(nyu-mll/GLUE-baselines); Wang et al., "GLUE: A Multi-Task Benchmark and Analysis Platform for
Natural Language Understanding" (2018); order and names of the classes as in TensorFlow Datasets'
`glue`.
"""

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from kbert.data.classification.text_pairs import TextExamples, read_text_examples
from kbert.hints import nearest
from kbert.metrics.glue_names import GLUE_METRICS, glue_task_name
from kbert.storage.files import write_atomically

_NLI = ("entailment", "neutral", "contradiction")
_MNLI_SPLITS = ("train", "dev_matched", "dev_mismatched", "test_matched", "test_mismatched")
_SUFFIXES = (".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz", ".json", ".json.gz")


@dataclass(frozen=True)
class GlueTask:
    """One task of GLUE."""

    name: str  # short name, such as "sst2"
    folder: str  # folder in the benchmark's download; also the stem of the submission file
    text_columns: tuple[str, ...]  # one or two columns of the official files that hold the texts
    label_column: str | None  # column of the labels in the train and dev files; None for "ax"
    # class names in the official order (the class number is the index); () for STS-B
    labels: tuple[str, ...]
    submission_labels: tuple[str, ...]  # names of these classes in the submission file
    test_rows: Mapping[str, int]  # official number of rows of each test split, by submission file
    # names of the splits, which are the stems of their files but for "ax"
    splits: tuple[str, ...] = ("train", "dev", "test")
    # lowest and highest score of a regression task, otherwise None
    label_range: tuple[float, float] | None = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the task's metrics; runs are compared by the first."""
        return GLUE_METRICS[self.name]

    @property
    def is_regression(self) -> bool:
        """True where the labels are scores."""
        return self.label_range is not None


def _numbered(
    name: str, folder: str, texts: tuple[str, ...], label: str, labels: tuple[str, str], rows: int
) -> GlueTask:
    """Returns a task whose files and submissions write the class as 0 or 1."""
    return GlueTask(name, folder, texts, label, labels, ("0", "1"), {f"{folder}.tsv": rows})


def _named(name: str, folder: str, texts: tuple[str, str], rows: int) -> GlueTask:
    """Returns a task of two classes whose files write their names."""
    labels = ("entailment", "not_entailment")
    return GlueTask(name, folder, texts, "label", labels, labels, {f"{folder}.tsv": rows})


_PAIR = ("sentence1", "sentence2")
_MRPC_LABELS = ("not_equivalent", "equivalent")
_QQP_LABELS = ("not_duplicate", "duplicate")
_WNLI_LABELS = ("not_entailment", "entailment")
_MNLI_ROWS = {"MNLI-m.tsv": 9796, "MNLI-mm.tsv": 9847}
GLUE_TASKS: dict[str, GlueTask] = {
    task.name: task
    for task in (
        _numbered("cola", "CoLA", ("sentence",), "label", ("unacceptable", "acceptable"), 1063),
        _numbered("sst2", "SST-2", ("sentence",), "label", ("negative", "positive"), 1821),
        _numbered("mrpc", "MRPC", ("#1 String", "#2 String"), "Quality", _MRPC_LABELS, 1725),
        GlueTask(
            "stsb", "STS-B", _PAIR, "score", (), (), {"STS-B.tsv": 1379}, label_range=(0.0, 5.0)
        ),
        _numbered("qqp", "QQP", ("question1", "question2"), "is_duplicate", _QQP_LABELS, 390965),
        GlueTask("mnli", "MNLI", _PAIR, "gold_label", _NLI, _NLI, _MNLI_ROWS, _MNLI_SPLITS),
        _named("qnli", "QNLI", ("question", "sentence"), 5463),
        _named("rte", "RTE", _PAIR, 3000),
        _numbered("wnli", "WNLI", _PAIR, "label", _WNLI_LABELS, 146),
        GlueTask("ax", "AX", _PAIR, None, _NLI, _NLI, {"AX.tsv": 1104}, ("test",)),
    )
}


def glue_task(task: str) -> GlueTask:
    """Returns a task of GLUE by its name, also in spellings such as "STS-B" and "SST-2"."""
    return GLUE_TASKS[glue_task_name(task)]


def read_glue(
    task: str,
    path: str | os.PathLike[str],
    split: str = "train",
) -> TextExamples:
    """Reads a split of a GLUE task in the official layout.

    Fields of TSV are quoted where they look so: those of the official files are not, though full of
    quotation marks, but those of files exported elsewhere may be. The broken rows of QQP's first
    release are left out, with a warning (`UserWarning`); in other tasks they are a ValueError.
    Labels are the names in `GlueTask.labels` (files may write names or class numbers), or floats
    for STS-B; test splits have none.

    Args:
        path: the task's folder, the folder that holds all tasks' folders, or one file: TSV, or {id:
            {text_a, text_b, label}} as JSON; each may be gzipped.
        split: "train", "dev" (or "validation"), "test"; for MNLI "dev_matched", "dev_mismatched",
            "test_matched", "test_mismatched", where "dev" and "test" mean the matched ones.
    """
    known = glue_task(task)
    split = glue_split(known, split)
    file = glue_file(known, path, split)
    arguments = _tsv_columns(known, split) if ".tsv" in file.suffixes else {}
    examples = read_text_examples(
        file,
        quoting="auto",
        regression=known.is_regression,
        labeled=not split.startswith("test"),
        malformed_rows="skip" if known.name == "qqp" else "error",
        **arguments,
    )
    return examples if examples.labels is None else _with_names(known, examples)


def glue_split(task: GlueTask, split: str) -> str:
    """Returns the canonical name of a split: "validation" is "dev", MNLI's "dev" is matched."""
    name = split.replace("validation", "dev").replace("-", "_")
    if name not in task.splits and f"{name}_matched" in task.splits:
        name = f"{name}_matched"
    if name not in task.splits:
        raise ValueError(
            f"`split` must be one of {', '.join(task.splits)} for the task {task.name}. "
            f"Received: split={split!r}.{nearest(name, task.splits)}"
        )
    return name


def glue_file(task: GlueTask, folder: str | os.PathLike[str], split: str) -> Path:
    """Returns the file of a split, which is given by its canonical name.

    `folder` is that of the task or of all tasks, or the file itself. A FileNotFoundError lists the
    names tried.
    """
    path = Path(folder)
    if path.is_file():
        return path
    stems, folders = [split], [path, path / task.folder]
    if task.name == "ax":
        stems, folders = ["AX", "diagnostic", "test"], [*folders, path / "diagnostic"]
    elif split == "dev_matched":
        stems.append("dev")
    for place, stem, suffix in product(folders, stems, _SUFFIXES):
        if (place / f"{stem}{suffix}").is_file():
            return place / f"{stem}{suffix}"
    tried = ", ".join(f"{stem}.tsv" for stem in stems)
    raise FileNotFoundError(
        f"`path` must be a file, or a folder with {tried} (or .jsonl, .json, each also .gz) in it "
        f"or in its folder {task.folder}. Received: path={os.fspath(path)!r}, "
        f"task={task.name!r}, split={split!r}"
    )


def check_glue(task: str, folder: str | os.PathLike[str], split: str) -> None:
    """Raises a FileNotFoundError if the file of a split is not there; for the command line."""
    known = glue_task(task)
    if not Path(folder).exists():
        raise FileNotFoundError(
            f"`--data` must be the folder of GLUE. Received: {str(folder)!r}, which does not exist"
        )
    glue_file(known, folder, glue_split(known, split))


def _tsv_columns(task: GlueTask, split: str) -> dict[str, Any]:
    """Returns the columns of an official file, as arguments of `read_text_examples`."""
    if task.name == "cola" and not split.startswith("test"):
        # The only official files without a header: source, label, star, sentence.
        return {"text_a": 3, "label": 1}
    columns: dict[str, Any] = dict(zip(("text_a", "text_b"), task.text_columns))
    if task.label_column is not None and not split.startswith("test"):
        columns["label"] = task.label_column
    return columns


def _with_names(task: GlueTask, examples: TextExamples) -> TextExamples:
    """Checks the labels, and converts class numbers to names."""
    labels = examples.labels or []
    if task.label_range is not None:
        low, high = task.label_range
        for score, line in zip(labels, examples.lines):
            if not low <= score <= high:  # type: ignore[operator]  # floats: regression
                raise ValueError(
                    f"{examples.source}, line {line}: the score must be in {low}..{high} for "
                    f"{task.folder}. Received: {score}"
                )
        return examples
    name_of = {name: name for name in task.labels}
    name_of |= {str(i): name for i, name in enumerate(task.labels)}
    named = []
    for label, line in zip(labels, examples.lines):
        if label not in name_of:
            raise ValueError(
                f"{examples.source}, line {line}: the label of {task.folder} must be one of "
                f"{', '.join(f'`{name}`' for name in name_of)}. Received: {label!r}."
                f"{nearest(str(label), name_of)}"
            )
        named.append(name_of[label])
    return replace(examples, labels=named)


def write_glue_submission(
    task: str,
    predictions: Sequence[Any],
    directory: str | os.PathLike[str],
    ids: Sequence[str | int] | None = None,
    *,
    split: str = "test",
) -> Path:
    """Writes the predictions for a test set to the file that the GLUE server expects.

    Returns its path, such as `SST-2.tsv` in `directory`, which is created if it is missing. Warns
    (`UserWarning`) where the number of rows is not that of the official test set. A ValueError says
    that there are no predictions, that one is not a class of the task or a finite score, or that
    ids do not fit.

    Args:
        predictions: one class name or class number a test row; for STS-B one score, which is
            clipped to 0..5 and written with 3 decimals.
        ids: the rows' ids, in the order of the predictions; None numbers them from 0.
        split: for MNLI "test_matched" (what "test" means) or "test_mismatched".
    """
    known = glue_task(task)
    name = submission_name(known, split)
    if len(predictions) == 0:
        raise ValueError("`predictions` must hold one item a test row. Received: none")
    ids = range(len(predictions)) if ids is None else ids
    if len(ids) != len(predictions) or len(set(ids)) != len(ids):
        raise ValueError(
            f"`ids` must be {len(predictions)} different ids, one a prediction. Received: "
            f"{len(ids)} ids, {len(set(ids))} of them different"
        )
    rows = known.test_rows[name]
    if len(predictions) != rows:
        warnings.warn(
            f"{name}: the official test set has {rows} rows. Received: {len(predictions)}; the "
            "GLUE server will refuse this file.",
            stacklevel=2,
        )
    lines = ["index\tprediction"]
    lines += [f"{id}\t{_answer(known, p, i)}" for i, (id, p) in enumerate(zip(ids, predictions))]
    path = Path(directory, name)
    write_atomically(path, "\n".join(lines) + "\n")
    return path


def submission_name(task: GlueTask, split: str) -> str:
    """Returns the name of the file for a split; a ValueError for one that is none of tests."""
    names = list(task.test_rows)
    allowed = {"test": names[0]}
    if len(names) > 1:
        allowed |= {"test_matched": names[0], "test_mismatched": names[1]}
    split = split.replace("-", "_")
    if split not in allowed:
        raise ValueError(
            f"`split` must be one of {', '.join(allowed)} for the task {task.name}. Received: "
            f"split={split!r}.{nearest(split, allowed)}"
        )
    return allowed[split]


def _answer(task: GlueTask, prediction: Any, row: int) -> str:
    if task.label_range is not None:
        low, high = task.label_range
        score = float(prediction)
        if not math.isfinite(score):
            raise ValueError(
                f"`predictions` must be finite scores. Received: predictions[{row}]={score}"
            )
        return f"{min(max(score, low), high):.3f}"
    name = str(prediction)
    if name in task.labels:
        return task.submission_labels[task.labels.index(name)]
    if name.isdecimal() and int(name) < len(task.labels):
        return task.submission_labels[int(name)]
    raise ValueError(
        f"`predictions` must be classes of {task.folder}, {', '.join(task.labels)}, or their "
        f"numbers. Received: predictions[{row}]={prediction!r}.{nearest(name, task.labels)}"
    )
