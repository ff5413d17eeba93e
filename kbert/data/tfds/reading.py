"""Questions, tagged sentences and sentence pairs from TensorFlow Datasets (TFDS), as from files.

TFDS writes examples in an order of its own and does not keep the original one, so they come in that
order: the same each time, but not that of the files.

Source: tensorflow.org/datasets/catalog, `squad`, `conll2003`, `wmt14_translate`, `wmt16_translate`,
`ted_hrlr_translate`.
"""

import os
from typing import Any

from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.data.questions.question_examples import QuestionExamples, answers_of
from kbert.data.tables.table import nearest
from kbert.data.tfds.sources import TfdsDataset
from kbert.data.translation.parallel_text import ParallelText


def read_tfds_questions(
    name: str = "squad/v1.1",
    split: str = "train",
    data_dir: str | os.PathLike[str] | None = None,
    *,
    labeled: bool = True,
    manual_dir: str | os.PathLike[str] | None = None,
    check_manual_files: bool = True,
) -> QuestionExamples:
    """Reads questions of a split of a TFDS dataset.

    Args:
        name: "squad/v1.1", "squad/v2.0", or another dataset with SQuAD's features, such as
            "xquad/en". The other arguments are those of `TfdsDataset` and its `rows`.
        labeled: whether to read the answers.

    Returns:
        `QuestionExamples` in TFDS's order; `paths` are row numbers, from 1.

    Raises:
        ValueError: unknown dataset or split, one without SQuAD's features, or a wrong answer.
        RuntimeError, ImportError: see `TfdsDataset`.
    """
    dataset = _dataset(name, data_dir, ("id", "question", "context", "answers"))
    found, source = dataset.rows(split, manual_dir, check_manual_files)
    rows = list(found)
    contexts = [_text(row["context"]) for row in rows]
    paths = [f"row {number}" for number in range(1, len(rows) + 1)]
    answers = [
        answers_of(_answer_lists(row["answers"]), context, f"{source}, {path}") if labeled else []
        for row, context, path in zip(rows, contexts, paths)
    ]
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
    """Reads tagged sentences of a split of a TFDS dataset.

    Args:
        name: "conll2003", or another dataset with a sequence of words and one of class labels. The
            other arguments are those of `TfdsDataset` and its `rows`; TFDS recorded no sha256 of
            `conll2003.zip`.
        words: feature of the words.
        tags: feature of the tags: "ner", "pos" or "chunks" in CoNLL's datasets.

    Returns:
        `TaggedSentences` in TFDS's order, without empty ones. TFDS keeps no documents, so all
        sentences belong to one; `lines` are row numbers, from 1.

    Raises:
        ValueError: unknown dataset, split or feature, or a split without sentences.
        RuntimeError, ImportError: see `TfdsDataset`.
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
    """Returns a dataset that has some features."""
    dataset = TfdsDataset(name, data_dir)
    known = list(dataset.features)
    for feature in features:
        if feature not in known:
            raise ValueError(
                f"`name` must be a dataset with the features {', '.join(features)}. Received: "
                f"name={name!r}, which has {', '.join(known)}.{nearest(feature, known)}"
            )
    return dataset


def _answer_lists(value: dict[str, Any]) -> dict[str, list[Any]]:
    return {
        "text": [_text(text) for text in value["text"]],
        "answer_start": [int(start) for start in value["answer_start"]],
    }


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
    """Reads sentence pairs of a split of a TFDS dataset.

    Args:
        name: such as "wmt16_translate/de-en", "wmt14_translate/fr-en" or
            "ted_hrlr_translate/pt_to_en". Arguments that are not listed here are those of
            `TfdsDataset` and its `rows`.
        source_language: the language to translate from, by its name in TFDS ("en"). None is the
            other one where `target_language` is given, or the first one of the dataset's name.
        target_language: the language to translate into, likewise; by default the second one.

    Returns:
        `ParallelText` in TFDS's order; `lines` are row numbers, from 1.

    Raises:
        ValueError: unknown dataset, split or language, or a dataset of something else.
        RuntimeError, ImportError: see `TfdsDataset`.
    """
    dataset = TfdsDataset(name, data_dir)
    source, target = _languages(dataset, source_language, target_language)
    rows, shown = dataset.rows(split, manual_dir, check_manual_files)
    sources: list[str] = []
    targets: list[str] = []
    # One by one: a list of the rows of WMT, which are millions, takes several times the memory.
    for row in rows:
        sources.append(row[source].decode("utf-8"))
        targets.append(row[target].decode("utf-8"))
    if not sources:
        raise ValueError(f"{shown}: the split must hold sentences. Received: none")
    return ParallelText(sources, targets, shown, list(range(1, len(sources) + 1)))


def _languages(
    dataset: TfdsDataset, source: str | None, target: str | None
) -> tuple[str, str]:
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
