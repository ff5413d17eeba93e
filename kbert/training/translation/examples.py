"""Reader of the sentence pairs of a translation run, which checks them before the training."""

import hashlib
import os
from dataclasses import dataclass
from itertools import chain
from typing import Any

from kbert.data.tfds.reading import read_tfds_translations
from kbert.data.translation.parallel_text import ParallelText, read_parallel, read_parallel_tsv
from kbert.tasks.base.finetuned_task import TFDS
from kbert.training.config.translation_checks import PARTS
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.runs.run_log import tell_stage

_HASHES = {"train": "data_sha256", "validation": "validation_sha256", "test": "test_sha256"}


@dataclass(frozen=True)
class TranslationData:
    """The sentence pairs of a run: for training, validation and test.

    Attributes:
        train: The training pairs.
        validation: The validation pairs, or None.
        test: The test pairs, or None.
    """

    train: ParallelText
    validation: ParallelText | None
    test: ParallelText | None

    @property
    def parts(self) -> dict[str, ParallelText]:
        """The parts that exist, by name."""
        every = {part: getattr(self, part) for part in PARTS}
        return {part: pairs for part, pairs in every.items() if pairs is not None}

    @property
    def hashes(self) -> dict[str, str]:
        """Hashes of the parts, by their keys in a run's report."""
        return {_HASHES[name]: _sha256(part) for name, part in self.parts.items()}


def _sha256(pairs: ParallelText) -> str:
    """Returns a hash of all sentences and translations in their order."""
    digest = hashlib.sha256(f"{len(pairs)}\n".encode())
    for text in chain(pairs.sources, pairs.targets or ()):
        digest.update(f"{text}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def read_translation_data(config: TranslationConfig) -> TranslationData:
    """Reads all pairs of a run.

    Args:
        config: The run's configuration.

    Raises:
        ValueError: A file, a row or a column is wrong, or two files have different numbers of
            lines; the message names the file and the line.
        FileNotFoundError: A file is missing.
    """
    train, validation, test = (_read(config, part) for part in PARTS)
    if train is None:
        raise ValueError("`train` must be given. Received: train=None")
    return TranslationData(train, validation, test)


def _read(config: TranslationConfig, part: str) -> ParallelText | None:
    """Reads one part; returns None if the configuration has none."""
    given, source = getattr(config, part), getattr(config, f"{part}_source")
    if source is not None or given is not None:
        tell_stage(f"reading {source or given}")
    if source is not None:
        return read_parallel(source, getattr(config, f"{part}_target"))
    return None if given is None else read_table_of_pairs(given, config, part)


def read_table_of_pairs(
    given: str | os.PathLike[str], config: TranslationConfig | None = None, part: str = "test"
) -> ParallelText:
    """Reads a table of pairs, or a dataset of TFDS.

    Args:
        given: A TSV, CSV or JSON Lines file, or tfds:NAME, or tfds:NAME@SPLIT.
        config: Configuration with columns, languages and the folder of TFDS; None for defaults.
        part: The split if `given` names none.

    Raises:
        ValueError: The file, a row or a column is wrong, or there is no such dataset.
        FileNotFoundError: There is no such file.
    """
    name = os.fspath(given)
    if not name.startswith(TFDS):
        columns: Any = ("source", "target")
        if config is not None:
            columns = (config.source_column, config.target_column)
        return read_parallel_tsv(name, columns)
    dataset, _, split = name.removeprefix(TFDS).partition("@")
    languages: dict[str, Any] = {}
    if config is not None:
        languages = {
            "source_language": config.source_language,
            "target_language": config.target_language,
            "data_dir": config.data,
        }
    return read_tfds_translations(dataset, split or part, **languages)
