"""Sentence pairs from TensorFlow Datasets (TFDS), in the same form as from files.

TFDS writes examples in an order of its own and does not keep the original one, so they come in that
order: the same each time, but not that of the files.

Source: tensorflow.org/datasets/catalog, `wmt14_translate`, `wmt16_translate`, `ted_hrlr_translate`.
"""

import os
from pathlib import Path
from typing import Any

from kbert.data.tables.table import nearest
from kbert.data.tfds.sources import find_builder, import_tfds, prepare_builder, tfds_split
from kbert.data.translation.parallel_text import ParallelText


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
    """Reads a split of a TFDS dataset of translations, and prepares the dataset where needed.

    Args:
        name: such as "wmt16_translate/de-en", "wmt14_translate/fr-en" or
            "ted_hrlr_translate/pt_to_en".
        split: "train", "validation" (or its alias "dev"), "test", "train[:1000]".
        data_dir: folder of prepared datasets; None is TFDS's default.
        source_language: the language to translate from, by its name in TFDS ("en"). None is the
            other one where `target_language` is given, or the first one of the dataset's name.
        target_language: the language to translate into, likewise; by default the second one.
        manual_dir: folder with the original files, under their original names, for machines that
            cannot download.
        check_manual_files: whether these must have the size and sha256 that TFDS recorded.

    Returns:
        `ParallelText` in TFDS's order; `lines` are row numbers, from 1.

    Raises:
        ValueError: unknown dataset, split or language, or a dataset of something else.
        RuntimeError: the dataset could not be downloaded or prepared; the message says how to
            provide the original files.
        ImportError: tensorflow-datasets is not installed.
    """
    tfds = import_tfds()
    builder = find_builder(tfds, name, data_dir)
    source, target = _languages(tfds, name, builder.info, source_language, target_language)
    folder = None if manual_dir is None else Path(manual_dir)
    prepare_builder(tfds, builder, folder, check_manual_files)
    split = tfds_split(name, split, list(builder.info.splits))
    sources: list[str] = []
    targets: list[str] = []
    # One by one: a list of the rows of WMT, which are millions, takes several times the memory.
    for row in tfds.as_numpy(builder.as_dataset(split=split, shuffle_files=False)):
        sources.append(row[source].decode("utf-8"))
        targets.append(row[target].decode("utf-8"))
    if not sources:
        raise ValueError(f"tfds:{name}/{split}: the split must hold sentences. Received: none")
    return ParallelText(sources, targets, f"tfds:{name}/{split}", list(range(1, len(sources) + 1)))


def _languages(
    tfds: Any, name: str, info: Any, source: str | None, target: str | None
) -> tuple[str, str]:
    """Returns the features of the source and of the target language."""
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
