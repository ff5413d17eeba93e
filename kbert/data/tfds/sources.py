"""Examples from TensorFlow Datasets (TFDS), read into the same form as files.

Source: tensorflow.org/datasets, `tfds.builder`, `DownloadConfig.manual_dir`.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kbert.data.classification.text_pairs import TextExamples
from kbert.data.tables.table import nearest

# TFDS has other names for the text features of these tasks than their files have.
_GLUE_TEXTS = {
    "cola": ("sentence", None),
    "sst2": ("sentence", None),
    "mrpc": ("sentence1", "sentence2"),
    "stsb": ("sentence1", "sentence2"),
    "qqp": ("question1", "question2"),
    "mnli": ("premise", "hypothesis"),
    "mnli_matched": ("premise", "hypothesis"),
    "mnli_mismatched": ("premise", "hypothesis"),
    "qnli": ("question", "sentence"),
    "rte": ("sentence1", "sentence2"),
    "wnli": ("sentence1", "sentence2"),
    "ax": ("premise", "hypothesis"),
}
# TFDS has neither size nor sha256 of this file, so it would not look for it in a folder.
_FILES_WITHOUT_CHECKSUM = {"conll2003": {"conll2003.zip": "https://data.deepai.org/conll2003.zip"}}


class TfdsDataset:
    """A dataset of TFDS, which is prepared when its rows are read.

    Args:
        name: the dataset, such as "glue/sst2" or "imdb_reviews".
        data_dir: folder of prepared datasets; None is TFDS's default.

    Raises:
        ValueError: there is no such dataset.
        ImportError: tensorflow-datasets is not installed.
    """

    def __init__(self, name: str, data_dir: str | os.PathLike[str] | None) -> None:
        self.tfds = import_tfds()
        self.name = name
        folder = None if data_dir is None else os.fspath(data_dir)
        try:
            self._builder: Any = self.tfds.builder(name, data_dir=folder)
        except (self.tfds.core.DatasetNotFoundError, ValueError) as error:
            raise ValueError(
                f"`name` must be a dataset of TFDS. Received: name={name!r}. "
                f"{str(error).strip().splitlines()[0]}"
            ) from error
        self.info = self._builder.info
        self.features = self.info.features

    def rows(
        self, split: str, manual_dir: str | os.PathLike[str] | None, check_manual_files: bool
    ) -> tuple[Iterable[dict[Any, Any]], str]:
        """Prepares the dataset where needed, and reads a split.

        Args:
            split: "train", "validation" (or its alias "dev"), "train[:100]".
            manual_dir: folder with the original files, under their original names, for machines
                that cannot download.
            check_manual_files: whether these must have the size and sha256 that TFDS recorded.
                False accepts other files of the same format.

        Returns:
            The rows in TFDS's order, and the name of the split for messages.

        Raises:
            ValueError: there is no such split.
            RuntimeError: the dataset could not be downloaded or prepared; the message says how to
                provide the original files.
        """
        folder = None if manual_dir is None else Path(manual_dir)
        if not self._builder.is_prepared():
            self._prepare(folder, check_manual_files)
        split = tfds_split(self.name, split, list(self.info.splits))
        rows = self.tfds.as_numpy(self._builder.as_dataset(split=split, shuffle_files=False))
        return rows, f"tfds:{self.name}/{split}"

    def _prepare(self, manual_dir: Path | None, check: bool) -> None:
        files = self._original_files()
        given = None if manual_dir is None else os.fspath(manual_dir)
        if manual_dir is not None and files and not any((manual_dir / f).is_file() for f in files):
            raise RuntimeError(
                f"`manual_dir` must hold the original files of {self.info.full_name}: "
                f"{', '.join(files)}. Received: manual_dir={given!r}"
            )
        config = self.tfds.download.DownloadConfig(manual_dir=given)
        try:
            with self._accepted_files(manual_dir, check):
                self._builder.download_and_prepare(download_config=config)
        except Exception as error:  # TFDS, requests and the file systems each raise their own.
            shown = ", ".join(files[:20]) if files else "see the dataset's page"
            raise RuntimeError(
                f"{self.info.full_name} could not be prepared: {type(error).__name__}: "
                f"{' '.join(str(error).split())[:300]}. Without a network, put the dataset's "
                f"original files ({shown}) into a folder, and pass it as `manual_dir`; pass "
                "check_manual_files=False where their bytes are not the recorded ones. Received: "
                f"manual_dir={given!r}"
            ) from error

    def _original_files(self) -> list[str]:
        """Returns the names of files that TFDS would download, for one GLUE task where known."""
        infos = self._builder.url_infos or {}
        url = getattr(self._builder.builder_config, "data_url", None)
        chosen = [infos[url]] if url in infos else infos.values()
        unchecked = _FILES_WITHOUT_CHECKSUM.get(self._builder.name, {})
        return sorted({*(info.filename for info in chosen), *unchecked})

    @contextmanager
    def _accepted_files(self, manual_dir: Path | None, check: bool) -> Iterator[None]:
        """Records sizes and sha256 of a folder's files, within the context.

        Those that TFDS has none of; and the others too, in place of its own, without `check`.
        """
        checksums = self.tfds.core.download.checksums
        recorded, everywhere = self._builder.url_infos or {}, checksums.get_all_url_infos()
        before = dict(recorded)
        unchecked = _FILES_WITHOUT_CHECKSUM.get(self._builder.name, {})
        added = {url: file for file, url in unchecked.items() if url not in everywhere}
        replaced = {} if check else {url: info.filename for url, info in before.items()}
        for infos, files in ((everywhere, added), (recorded, replaced)):
            for url, file in files.items():
                if manual_dir is not None and (manual_dir / file).is_file():
                    infos[url] = checksums.compute_url_info(manual_dir / file)
        try:
            yield
        finally:
            recorded.update(before)
            for url in added:
                everywhere.pop(url, None)


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
    """Reads texts, or pairs of texts, of a split of a TFDS dataset.

    Args:
        name, data_dir: see `TfdsDataset`; and `TfdsDataset.rows` for `split`, `manual_dir` and
            `check_manual_files`.
        text_a: feature of the text; needed outside glue/*.
        text_b: feature of the second text, or None.
        label: feature of the labels. Class labels become their names, other integers their
            digits, floats stay scores.

    Returns:
        `TextExamples`; without labels where all are -1 (test splits). GLUE's come in the order of
        the original file. `lines` are the row numbers, from 1.

    Raises:
        ValueError: unknown dataset, split or feature.
        RuntimeError, ImportError: see `TfdsDataset`.
    """
    dataset = TfdsDataset(name, data_dir)
    features = dataset.features
    config = name.removeprefix("glue/").partition(":")[0] if name.startswith("glue/") else None
    if text_a is None and config in _GLUE_TEXTS:
        text_a, text_b = _GLUE_TEXTS[config]
    given = {"text_a": text_a, "text_b": text_b, "label": None if label == "label" else label}
    _check_features(name, list(features), given)
    found, source = dataset.rows(split, manual_dir, check_manual_files)
    rows = list(found)
    if config is not None:
        rows.sort(key=lambda row: int(row["idx"]))
    return TextExamples(
        text_a=[row[text_a].decode("utf-8") for row in rows],
        text_b=None if text_b is None else [row[text_b].decode("utf-8") for row in rows],
        labels=_labels(name, features[label], rows, label) if label in features else None,
        ids=[str(row["idx"]) for row in rows] if "idx" in features else None,
        source=source,
        lines=list(range(1, len(rows) + 1)),
    )


def tfds_split(name: str, split: str, known: list[str]) -> str:
    """Returns TFDS's name of a split; the parts of a sum ("train+test") are left to TFDS.

    Args:
        name: the dataset, for messages.
        split: such as "train", "dev[:100]"; "dev" and "validation" mean whichever exists, also at
            the beginning of a name ("dev_matched").
        known: the splits of the dataset.

    Raises:
        ValueError: there is no such split.
    """
    base, bracket, rest = split.partition("[")
    for one, other in (("dev", "validation"), ("validation", "dev")):
        renamed = other + base.removeprefix(one)
        if base not in known and base.startswith(one) and renamed.partition("+")[0] in known:
            return renamed + bracket + rest
    if "+" not in split and base not in (*known, "all"):
        raise ValueError(
            f"`split` must be one of {', '.join(known)} for {name}. Received: split={split!r}."
            f"{nearest(base, known)}"
        )
    return split


def import_tfds() -> Any:
    """Imports tensorflow_datasets, which takes seconds.

    Raises:
        ImportError: it is not installed; the message says how to install it.
    """
    try:
        import tensorflow_datasets
    except ImportError as error:
        # TFDS 4.9 itself fails without importlib_resources on Python 3.11.
        raise ImportError(
            "Reading TFDS needs tensorflow-datasets. Install it with `pip install "
            f"tensorflow-datasets importlib_resources`. ({error})"
        ) from error
    return tensorflow_datasets


def _check_features(name: str, known: list[str], given: dict[str, str | None]) -> None:
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
        return [value.decode("utf-8") for value in values]
    if values[0].dtype.kind == "f":
        return [float(value) for value in values]
    return [str(value) for value in values]
