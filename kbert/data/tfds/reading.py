"""Questions and tagged sentences from TensorFlow Datasets (TFDS), in the same form as from files.

TFDS writes examples in an order of its own and does not keep the original one, so they come in that
order: the same each time, but not that of the files.

Source: tensorflow.org/datasets/catalog/squad and .../conll2003.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.data.questions.question_examples import QuestionExamples, answers_of
from kbert.data.tables.table import nearest
from kbert.data.tfds.sources import find_builder, import_tfds, prepare_builder, tfds_split

# TFDS has neither size nor sha256 of this file, so it would not look for it in a folder.
_FILES_WITHOUT_CHECKSUM = {"conll2003": {"conll2003.zip": "https://data.deepai.org/conll2003.zip"}}


def read_tfds_questions(
    name: str = "squad/v1.1",
    split: str = "train",
    data_dir: str | os.PathLike[str] | None = None,
    *,
    labeled: bool = True,
    manual_dir: str | os.PathLike[str] | None = None,
    check_manual_files: bool = True,
) -> QuestionExamples:
    """Reads a split of a TFDS dataset of questions, and prepares the dataset where needed.

    Args:
        name: "squad/v1.1", "squad/v2.0", or another dataset with SQuAD's features, such as
            "xquad/en".
        split: "train", "validation" (or its alias "dev"), "train[:100]".
        data_dir: folder of prepared datasets; None is TFDS's default.
        labeled: whether to read the answers.
        manual_dir: folder with the original files, under their original names, for machines that
            cannot download.
        check_manual_files: whether these must have the size and sha256 that TFDS recorded.

    Returns:
        `QuestionExamples` in TFDS's order; `paths` are row numbers, from 1.

    Raises:
        ValueError: unknown dataset or split, one without SQuAD's features, or a wrong answer.
        RuntimeError: the dataset could not be downloaded or prepared; the message says how to
            provide the original files.
        ImportError: tensorflow-datasets is not installed.
    """
    features = ("id", "question", "context", "answers")
    rows, _, source = _rows(name, split, data_dir, features, manual_dir, check_manual_files)
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
    """Reads a split of a TFDS dataset of tagged sentences, and prepares the dataset where needed.

    Args:
        name: "conll2003", or another dataset with a sequence of words and one of class labels.
        split: "train", "dev" (or its alias "validation"), "test", "train[:100]".
        data_dir: folder of prepared datasets; None is TFDS's default.
        words: feature of the words.
        tags: feature of the tags: "ner", "pos" or "chunks" in CoNLL's datasets.
        manual_dir: folder with the original file (`conll2003.zip`), for machines that cannot
            download.
        check_manual_files: whether files there must have the size and sha256 that TFDS recorded; of
            `conll2003.zip` it recorded none.

    Returns:
        `TaggedSentences` in TFDS's order, without empty ones. TFDS keeps no documents, so all
        sentences belong to one; `lines` are row numbers, from 1.

    Raises:
        ValueError: unknown dataset, split or feature, or a split without sentences.
        RuntimeError: the dataset could not be downloaded or prepared; the message says how to
            provide the original files.
        ImportError: tensorflow-datasets is not installed.
    """
    rows, known, source = _rows(
        name, split, data_dir, (words, tags), manual_dir, check_manual_files
    )
    feature: Any = getattr(known[tags], "feature", None)
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


def _rows(
    name: str,
    split: str,
    data_dir: str | os.PathLike[str] | None,
    features: tuple[str, ...],
    manual_dir: str | os.PathLike[str] | None,
    check: bool,
) -> tuple[list[dict[str, Any]], Any, str]:
    """Returns the rows of a split, the features, and the split's name for messages."""
    tfds = import_tfds()
    builder = find_builder(tfds, name, data_dir)
    known = list(builder.info.features)
    for feature in features:
        if feature not in known:
            raise ValueError(
                f"`name` must be a dataset with the features {', '.join(features)}. Received: "
                f"name={name!r}, which has {', '.join(known)}.{nearest(feature, known)}"
            )
    folder = None if manual_dir is None else Path(manual_dir)
    with _known_files(tfds, builder, folder):
        prepare_builder(tfds, builder, folder, check)
    split = tfds_split(name, split, list(builder.info.splits))
    rows = tfds.as_numpy(builder.as_dataset(split=split, shuffle_files=False))
    return list(rows), builder.info.features, f"tfds:{name}/{split}"


@contextmanager
def _known_files(tfds: Any, builder: Any, manual_dir: Path | None) -> Iterator[None]:
    """Makes TFDS look into a folder for files without a recorded sha256, within the context."""
    files = _FILES_WITHOUT_CHECKSUM.get(builder.name, {})
    if manual_dir is None or not files or builder.is_prepared():
        yield
        return
    if not any((manual_dir / file).is_file() for file in files):
        raise RuntimeError(
            f"`manual_dir` must hold the original files of {builder.info.full_name}: "
            f"{', '.join(files)}. Received: manual_dir={os.fspath(manual_dir)!r}"
        )
    checksums = tfds.core.download.checksums
    recorded = checksums.get_all_url_infos()
    added = {
        url: checksums.compute_url_info(manual_dir / file)
        for file, url in files.items()
        if url not in recorded and (manual_dir / file).is_file()
    }
    recorded.update(added)
    try:
        yield
    finally:
        for url in added:
            recorded.pop(url, None)


def _answer_lists(value: dict[str, Any]) -> dict[str, list[Any]]:
    return {
        "text": [_text(text) for text in value["text"]],
        "answer_start": [int(start) for start in value["answer_start"]],
    }


def _text(value: bytes) -> str:
    return value.decode("utf-8")
