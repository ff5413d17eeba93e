"""The GLUE tasks: their files, columns and labels as the benchmark ships them.

Sources: gluebenchmark.com (the zip files of each task); Wang et al., "GLUE: A Multi-Task Benchmark
and Analysis Platform for Natural Language Understanding" (2018); order and names of the classes as
in TensorFlow Datasets' `glue`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kbert.data.classification.text_pairs import TextExamples, read_text_examples
from kbert.data.tables.table import nearest
from kbert.metrics.glue_names import GLUE_METRICS, glue_task_name

_NLI = ("entailment", "neutral", "contradiction")
_PLAIN_SPLITS = {"train": "train", "dev": "dev", "test": "test"}
_MNLI_SPLITS = {
    "train": "train",
    "dev_matched": "dev_matched",
    "dev_mismatched": "dev_mismatched",
    "test_matched": "test_matched",
    "test_mismatched": "test_mismatched",
}
_SUFFIXES = (".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz", ".json", ".json.gz")


@dataclass(frozen=True)
class GlueTask:
    """One task of GLUE.

    Attributes:
        name: short name, such as "sst2".
        folder: folder in the benchmark's download; also the stem of the submission file.
        text_columns: one or two columns of the official files that hold the texts.
        label_column: column of the labels in the train and dev files; None for "ax".
        labels: class names in the official order (the class number is the index); () for STS-B.
        submission_labels: names of these classes in the submission file.
        test_rows: official number of rows of each test split, by submission file.
        splits: {split: stem of its file}.
        label_range: lowest and highest score of a regression task, otherwise None.
    """

    name: str
    folder: str
    text_columns: tuple[str, ...]
    label_column: str | None
    labels: tuple[str, ...]
    submission_labels: tuple[str, ...]
    test_rows: Mapping[str, int]
    splits: Mapping[str, str] = field(default_factory=lambda: dict(_PLAIN_SPLITS))
    label_range: tuple[float, float] | None = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """Returns the names of the task's metrics; runs are compared by the first."""
        return GLUE_METRICS[self.name]

    @property
    def is_regression(self) -> bool:
        """Returns whether the labels are scores."""
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
_WNLI_LABELS = ("not_entailment", "entailment")
GLUE_TASKS: dict[str, GlueTask] = {
    task.name: task
    for task in (
        _numbered("cola", "CoLA", ("sentence",), "label", ("unacceptable", "acceptable"), 1063),
        _numbered("sst2", "SST-2", ("sentence",), "label", ("negative", "positive"), 1821),
        _numbered(
            "mrpc",
            "MRPC",
            ("#1 String", "#2 String"),
            "Quality",
            ("not_equivalent", "equivalent"),
            1725,
        ),
        GlueTask(
            "stsb", "STS-B", _PAIR, "score", (), (), {"STS-B.tsv": 1379}, label_range=(0.0, 5.0)
        ),
        _numbered(
            "qqp",
            "QQP",
            ("question1", "question2"),
            "is_duplicate",
            ("not_duplicate", "duplicate"),
            390965,
        ),
        GlueTask(
            "mnli",
            "MNLI",
            _PAIR,
            "gold_label",
            _NLI,
            _NLI,
            {"MNLI-m.tsv": 9796, "MNLI-mm.tsv": 9847},
            splits=_MNLI_SPLITS,
        ),
        _named("qnli", "QNLI", ("question", "sentence"), 5463),
        _named("rte", "RTE", _PAIR, 3000),
        _numbered("wnli", "WNLI", _PAIR, "label", _WNLI_LABELS, 146),
        GlueTask("ax", "AX", _PAIR, None, _NLI, _NLI, {"AX.tsv": 1104}, {"test": "AX"}),
    )
}


def glue_task(task: str) -> GlueTask:
    """Returns a task of GLUE by its name, also in spellings such as "STS-B" and "SST-2".

    Raises:
        ValueError: there is no such task.
    """
    return GLUE_TASKS[glue_task_name(task)]


def read_glue(
    task: str,
    path: str | os.PathLike[str],
    split: str = "train",
    *,
    quoting: bool | str = "auto",
    malformed_rows: str | None = None,
) -> TextExamples:
    """Reads a split of a GLUE task in the official layout.

    Args:
        task: name of the GLUE task, such as "sst2" or "SST-2".
        path: the task's folder, the folder that holds all tasks' folders, or one file: TSV, or
            {id: {text_a, text_b, label}} as JSON; each may be gzipped.
        split: "train", "dev" (or "validation"), "test"; for MNLI "dev_matched", "dev_mismatched",
            "test_matched", "test_mismatched", where "dev" and "test" mean the matched ones.
        quoting: whether TSV fields are quoted. "auto" detects it: those of the official files are
            not, though full of quotation marks, but those of files exported elsewhere may be.
        malformed_rows: "error" or "skip"; None skips in QQP (with a warning), whose first release
            has broken rows, and is "error" in other tasks.

    Returns:
        `TextExamples` whose labels are the names in `GlueTask.labels` (files may write names or
        class numbers), or floats for STS-B; without labels for test splits.

    Raises:
        ValueError: unknown task or split, a file in another layout, or an unknown label.
        FileNotFoundError: the split's file is missing; the message lists the names tried.
    """
    known = glue_task(task)
    split = glue_split(known, split)
    file = glue_file(known, path, split)
    arguments = _tsv_columns(known, split) if ".tsv" in file.suffixes else {}
    if malformed_rows is None:
        malformed_rows = "skip" if known.name == "qqp" else "error"
    examples = read_text_examples(
        file,
        quoting=quoting,
        regression=known.is_regression,
        labeled=not split.startswith("test"),
        malformed_rows=malformed_rows,
        **arguments,
    )
    return examples if examples.labels is None else _with_names(known, examples)


def glue_split(task: GlueTask, split: str) -> str:
    """Returns the canonical name of a split: "validation" is "dev", MNLI's "dev" is matched.

    Raises:
        ValueError: the task has no such split.
    """
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
    """Returns the file of a split.

    Args:
        task: the task.
        folder: the task's folder, the folder that holds all tasks' folders, or the file itself.
        split: the split by its canonical name.

    Raises:
        FileNotFoundError: it is missing; the message lists the names tried.
    """
    path = Path(folder)
    if path.is_file():
        return path
    stems = [task.splits[split]]
    if task.name == "ax":
        stems = ["AX", "diagnostic", "test"]
    elif split == "dev_matched":
        stems.append("dev")
    folders = [path, path / task.folder]
    if task.name == "ax":
        folders.append(path / "diagnostic")
    for folder in folders:
        for stem in stems:
            for suffix in _SUFFIXES:
                if (folder / f"{stem}{suffix}").is_file():
                    return folder / f"{stem}{suffix}"
    tried = ", ".join(f"{stem}.tsv" for stem in stems)
    raise FileNotFoundError(
        f"`path` must be a file, or a folder with {tried} (or .jsonl, .json, each also .gz) in it "
        f"or in its folder {task.folder}. Received: path={os.fspath(path)!r}, "
        f"task={task.name!r}, split={split!r}"
    )


def _tsv_columns(task: GlueTask, split: str) -> dict[str, Any]:
    """Returns the columns of an official file, as arguments of `read_text_examples`."""
    if task.name == "cola" and not split.startswith("test"):
        # The only official files without a header: source, label, star, sentence.
        return {"text_a": 3, "label": 1, "header": False}
    columns: dict[str, Any] = {"text_a": task.text_columns[0]}
    if len(task.text_columns) == 2:
        columns["text_b"] = task.text_columns[1]
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
