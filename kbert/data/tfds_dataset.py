"""Data sets of TensorFlow Datasets (TFDS), downloaded or prepared from original files.

Source: tensorflow.org/datasets, `tfds.builder`, `DownloadConfig.manual_dir`.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kbert.extras import install_extra
from kbert.hints import nearest

# TFDS has neither size nor sha256 of this file, so it would not look for it in a folder.
_FILES_WITHOUT_CHECKSUM = {"conll2003": {"conll2003.zip": "https://data.deepai.org/conll2003.zip"}}


class TfdsDataset:
    """A dataset of TFDS, such as "glue/sst2" or "imdb_reviews", which is prepared when its rows are
    read.

    `data_dir` is the folder of prepared datasets; None is TFDS's default. An ImportError says that
    tensorflow-datasets is not installed.
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
        """Prepares the dataset where needed, and reads a split, such as "train", "dev" or
        "train[:100]".

        Returns the rows in TFDS's order, and the name of the split for messages. A RuntimeError
        says that the dataset could not be downloaded or prepared, and how to provide the original
        files. `manual_dir` is the folder of these, under their original names, for machines that
        cannot download; with `check_manual_files` they must have the size and sha256 that TFDS
        recorded, without it they may be others of the same format.
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


def tfds_split(name: str, split: str, known: list[str]) -> str:
    """Returns TFDS's name of a split of `known`, such as "train" and "dev[:100]".

    "dev" and "validation" mean whichever exists, also at the beginning of a name ("dev_matched").
    The parts of a sum ("train+test") are left to TFDS.
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
    """Imports tensorflow_datasets, which takes seconds; an ImportError says how to install it."""
    try:
        import tensorflow_datasets
    except ImportError as error:
        # TFDS 4.9 itself fails without importlib_resources on Python 3.11.
        raise ImportError(
            "Reading TFDS needs tensorflow-datasets and importlib_resources: "
            f"{install_extra('tfds')}. Received: {error}"
        ) from error
    return tensorflow_datasets
