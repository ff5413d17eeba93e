"""Texts, questions, tagged sentences and sentence pairs from TensorFlow Datasets (TFDS).

TFDS writes examples in an order of its own and does not keep the original one, so they come in that
order: the same each time, but not that of the files. Only GLUE's have numbers that restore it.

Source: tensorflow.org/datasets/catalog, `squad`, `conll2003`, `wmt14_translate`, `wmt16_translate`,
`ted_hrlr_translate`.
"""

import os
from typing import Any

from kbert.data.classification.text_pairs import TextExamples
from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.data.questions.question_examples import Answer, QuestionExamples, answers_of
from kbert.data.tfds_dataset import TfdsDataset
from kbert.data.translation.parallel_text import ParallelText
from kbert.hints import nearest

# TFDS has other names for the text features of these tasks than their files have.
_GLUE_TEXTS: dict[str, tuple[str, str | None]] = {
    **dict.fromkeys(("cola", "sst2"), ("sentence", None)),
    **dict.fromkeys(("mrpc", "stsb", "rte", "wnli"), ("sentence1", "sentence2")),
    **dict.fromkeys(("mnli", "mnli_matched", "mnli_mismatched", "ax"), ("premise", "hypothesis")),
    "qqp": ("question1", "question2"),
    "qnli": ("question", "sentence"),
}


def read_tfds(
    name: str,
    split: str = "train",
    data_dir: str | os.PathLike[str] | None = None,
    *,
    text_a: str | None = None,
    text_b: str | None = None,
    label: str = "label",
    manual_dir: str | os.PathLike[str] | None = None,
    check_manual_files: bool = True,
) -> TextExamples:
    """Reads texts, or pairs of texts, of a split of a TFDS dataset; GLUE's come in the order of the
    original file.

    There are no labels where all are -1 (test splits). `lines` are the row numbers, from 1. The
    arguments that are not listed here are those of `TfdsDataset` and its `rows`.

    Args:
        text_a: feature of the text; needed outside glue/*.
        text_b: feature of the second text, or None.
        label: feature of the labels. Class labels become their names, other integers their digits,
            floats stay scores.
    """
    dataset = TfdsDataset(name, data_dir)
    features = dataset.features
    config = name.removeprefix("glue/").partition(":")[0] if name.startswith("glue/") else None
    if text_a is None and config in _GLUE_TEXTS:
        text_a, text_b = _GLUE_TEXTS[config]
    given = {"text_a": text_a, "text_b": text_b, "label": None if label == "label" else label}
    check_features(name, list(features), given)
    found, source = dataset.rows(split, manual_dir, check_manual_files)
    rows = list(found)
    if not rows:
        raise ValueError(f"{source}: there must be rows. Received: none")
    _check_kinds(name, features, rows[0], {"text_a": text_a, "text_b": text_b}, label)
    if config is not None:
        rows.sort(key=lambda row: int(row["idx"]))
    return TextExamples(
        text_a=[_text(row[text_a]) for row in rows],
        text_b=None if text_b is None else [_text(row[text_b]) for row in rows],
        labels=_labels(name, features[label], rows, label) if label in features else None,
        ids=[str(row["idx"]) for row in rows] if "idx" in features else None,
        source=source,
        lines=list(range(1, len(rows) + 1)),
    )


def read_tfds_questions(
    name: str = "squad/v1.1",
    split: str = "train",
    data_dir: str | os.PathLike[str] | None = None,
    *,
    labeled: bool = True,
    manual_dir: str | os.PathLike[str] | None = None,
    check_manual_files: bool = True,
) -> QuestionExamples:
    """Reads questions of a split of a TFDS dataset, in TFDS's order; `paths` are row numbers, from
    1.

    `name` is "squad/v1.1", "squad/v2.0", or another dataset with SQuAD's features, such as
    "xquad/en"; `labeled` says whether to read the answers. The other arguments are those of
    `TfdsDataset` and its `rows`.
    """
    dataset = _dataset(name, data_dir, ("id", "question", "context", "answers"))
    found, source = dataset.rows(split, manual_dir, check_manual_files)
    rows = list(found)
    contexts = [_text(row["context"]) for row in rows]
    paths = [f"row {number}" for number in range(1, len(rows) + 1)]
    answers: list[list[Answer]] = [[] for _ in rows]
    for i, row in enumerate(rows if labeled else ()):
        texts, starts = row["answers"]["text"], row["answers"]["answer_start"]
        value = {"text": list(map(_text, texts)), "answer_start": list(map(int, starts))}
        answers[i] = answers_of(value, f"{source}, {paths[i]}")
    return QuestionExamples(
        ids=[_text(row["id"]) for row in rows],
        questions=[_text(row["question"]) for row in rows],
        contexts=contexts,
        answers=answers,
        titles=[_text(row.get("title", b"")) for row in rows],
        source=source,
        paths=paths,
        labeled=labeled,
    )


def read_tfds_sentences(
    name: str = "conll2003",
    split: str = "train",
    data_dir: str | os.PathLike[str] | None = None,
    *,
    words: str = "tokens",
    tags: str = "ner",
    manual_dir: str | os.PathLike[str] | None = None,
    check_manual_files: bool = True,
) -> TaggedSentences:
    """Reads tagged sentences of a split of a TFDS dataset, in TFDS's order, without empty ones.

    `name` is "conll2003", whose zip file has no recorded sha256, or another dataset with `words`, a
    sequence of words, and `tags`, one of class labels: "ner", "pos" or "chunks" in CoNLL's
    datasets. The other arguments are those of `TfdsDataset` and its `rows`. TFDS keeps no
    documents, so all sentences belong to one; `lines` are row numbers, from 1.
    """
    dataset = _dataset(name, data_dir, (words, tags))
    rows, source = dataset.rows(split, manual_dir, check_manual_files)
    feature: Any = getattr(dataset.features[tags], "feature", None)
    if not hasattr(feature, "int2str"):
        raise ValueError(
            f"`tags` must name a feature of class labels of {name}. Received: tags={tags!r}"
        )
    names = [feature.int2str(number) for number in range(feature.num_classes)]
    kept = [(line, row) for line, row in enumerate(rows, start=1) if len(row[words])]
    if not kept:
        raise ValueError(f"{source}: the split must hold sentences. Received: none")
    return TaggedSentences(
        words=[[_text(word) for word in row[words]] for _, row in kept],
        tags=[[names[int(tag)] for tag in row[tags]] for _, row in kept],
        documents=[0] * len(kept),
        source=source,
        lines=[line for line, _ in kept],
        is_line_a_word=False,
    )


def _dataset(
    name: str, data_dir: str | os.PathLike[str] | None, features: tuple[str, ...]
) -> TfdsDataset:
    dataset = TfdsDataset(name, data_dir)
    known = list(dataset.features)
    for feature in features:
        if feature not in known:
            raise ValueError(
                f"`name` must be a dataset with the features {', '.join(features)}. Received: "
                f"name={name!r}, which has {', '.join(known)}.{nearest(feature, known)}"
            )
    return dataset


def _text(value: bytes) -> str:
    return value.decode("utf-8")


def read_tfds_translations(
    name: str,
    split: str = "train",
    data_dir: str | os.PathLike[str] | None = None,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    manual_dir: str | os.PathLike[str] | None = None,
    check_manual_files: bool = True,
) -> ParallelText:
    """Reads sentence pairs of a split of a TFDS dataset, in TFDS's order; `lines` are row numbers,
    from 1.

    Args:
        name: such as "wmt16_translate/de-en", "wmt14_translate/fr-en" or
            "ted_hrlr_translate/pt_to_en". Arguments that are not listed here are those of
            `TfdsDataset` and its `rows`.
        source_language: the language to translate from, by its name in TFDS ("en"). None is the
            other one where `target_language` is given, or the first one of the dataset's name.
        target_language: the language to translate into, likewise; by default the second one.
    """
    dataset = TfdsDataset(name, data_dir)
    source, target = _languages(dataset, source_language, target_language)
    rows, shown = dataset.rows(split, manual_dir, check_manual_files)
    sources: list[str] = []
    targets: list[str] = []
    # One by one: a list of the rows of WMT, which are millions, takes several times the memory.
    for row in rows:
        sources.append(_text(row[source]))
        targets.append(_text(row[target]))
    if not sources:
        raise ValueError(f"{shown}: the split must hold sentences. Received: none")
    return ParallelText(sources, targets, shown, list(range(1, len(sources) + 1)))


def _languages(dataset: TfdsDataset, source: str | None, target: str | None) -> tuple[str, str]:
    """Returns the features of the source and of the target language."""
    name, info, tfds = dataset.name, dataset.info, dataset.tfds
    is_text = {key: isinstance(info.features[key], tfds.features.Text) for key in info.features}
    known = [key for key, is_right in is_text.items() if is_right]
    if len(known) < 2:
        raise ValueError(
            "`name` must be a dataset with sentences in two languages. Received: "
            f"name={name!r}, which has {', '.join(info.features)}"
        )
    given = {"source_language": source, "target_language": target}
    for argument, language in given.items():
        if language is not None and language not in known:
            raise ValueError(
                f"`{argument}` must be one of the languages of {name}, {', '.join(known)}. "
                f"Received: {argument}={language!r}.{nearest(language, known)}"
            )
    if source is None and target is None and info.supervised_keys is not None:
        source, target = info.supervised_keys[:2]
    if len(known) == 2:
        source = source or next(language for language in known if language != target)
        target = target or next(language for language in known if language != source)
    if source is None or target is None or not {source, target} <= set(known) or source == target:
        raise ValueError(
            f"`source_language` and `target_language` must be two of the languages of {name}, "
            f"{', '.join(known)}. Received: source_language={source!r}, "
            f"target_language={target!r}"
        )
    return source, target


def check_features(name: str, known: list[str], given: dict[str, str | None]) -> None:
    """Raises a ValueError for features of texts or labels that a dataset does not have."""
    if given["text_a"] is None:
        raise ValueError(
            f"`text_a` must name a text feature of {name}, one of {', '.join(known)}. Received: "
            "text_a=None"
        )
    for argument, feature in given.items():
        if feature is not None and feature not in known:
            raise ValueError(
                f"`{argument}` must be one of the features of {name}, {', '.join(known)}. "
                f"Received: {argument}={feature!r}.{nearest(feature, known)}"
            )


def _check_kinds(
    name: str, features: Any, row: dict[str, Any], texts: dict[str, str | None], label: str
) -> None:
    for argument, feature in texts.items():
        if feature is not None and not isinstance(row[feature], bytes):
            raise ValueError(
                f"`{argument}` must name a text feature of {name}. Received: {feature!r}, "
                f"{features[feature]}"
            )
    shape = getattr(row.get(label), "shape", ())
    if shape:
        raise ValueError(
            f"`label` must name a feature of {name} with one label a row; the task multi-label "
            f"takes several. Received: {label!r}, {features[label]}"
        )


def _labels(
    name: str, feature: Any, rows: list[dict[str, Any]], label: str
) -> list[str] | list[float] | None:
    values = [row[label] for row in rows]
    missing = [i for i, value in enumerate(values) if value == -1]
    if len(missing) == len(values):
        return None
    if missing and values[0].dtype.kind != "f":
        raise ValueError(
            f"{name}: each row must have a label, or none may have. Received: {len(missing)} of "
            f"{len(values)} rows with label -1, the first at row {missing[0] + 1}"
        )
    if hasattr(feature, "int2str") and feature.names:
        return [feature.int2str(int(value)) for value in values]
    if isinstance(values[0], bytes):
        return [_text(value) for value in values]
    if values[0].dtype.kind == "f":
        return [float(value) for value in values]
    return [str(value) for value in values]
