"""The sentence pairs of a translation run, read and checked before the training; its subwords.

Subwords are learned from the pairs, given, or kept from a stopped run.
"""

import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from kbert.data.tfds_examples import read_tfds_translations
from kbert.data.translation.parallel_text import ParallelText, read_parallel, read_parallel_tsv
from kbert.storage.files import atomic_directory
from kbert.tasks.finetuned_task import TFDS
from kbert.text.subword import Subword
from kbert.text.subword_training import train_subwords
from kbert.training.config.translation_config import PARTS, TranslationConfig
from kbert.training.runs.run_directory import tell_stage
from kbert.training.runs.stopped_runs import check_unchanged

_HASHES = {"train": "data_sha256", "validation": "validation_sha256", "test": "test_sha256"}
# Names in the run directory.
SUBWORDS = "subwords"
_JOINT, _SIDES = "joint.model", ("source.model", "target.model")
# Options that determine the pieces.
_OF_SUBWORDS = (
    *("source_subwords", "target_subwords", "subwords", "subword_type", "vocabulary_size"),
    *("character_coverage", "normalization", "byte_fallback", "subword_lines"),
)
# Of these, and the seed, arguments of learning have the same name.
_LEARNED_WITH = ("vocabulary_size", "character_coverage", "normalization", "byte_fallback", "seed")
Pair = tuple[Subword, Subword]


@dataclass(frozen=True)
class TranslationData:
    """The sentence pairs of a run: for training, validation and test."""

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
    """Reads all pairs of a run; errors name the file and the line."""
    train, validation, test = (_read(config, part) for part in PARTS)
    if train is None:
        raise ValueError("`train` must be given. Received: train=None")
    return TranslationData(train, validation, test)


def _read(config: TranslationConfig, part: str) -> ParallelText | None:
    given, source = getattr(config, part), getattr(config, f"{part}_source")
    if source is not None or given is not None:
        tell_stage(f"reading {source or given}")
    if source is not None:
        return read_parallel(source, getattr(config, f"{part}_target"))
    return None if given is None else read_table_of_pairs(given, config, part)


def read_table_of_pairs(
    given: str | os.PathLike[str],
    config: TranslationConfig | None = None,
    part: str = "test",
    columns: Sequence[str | None] = (None, None),
) -> ParallelText:
    """Reads a table of pairs (TSV, CSV or JSON Lines), or tfds:NAME or tfds:NAME@SPLIT of TFDS.

    The configuration, if any, has columns, languages and the folder of TFDS; `part` is the split if
    none is named. `columns` are other columns of source and target, by name or index.
    """
    name = os.fspath(given)
    if not name.startswith(TFDS):
        own: Sequence[str | int] = ("source", "target")
        if config is not None:
            own = (config.source_column, config.target_column)
        named = (int(one) if one and one.isdecimal() else one for one in columns)
        chosen = [usual if one is None else one for one, usual in zip(named, own)]
        return read_parallel_tsv(name, chosen)
    dataset, _, split = name.removeprefix(TFDS).partition("@")
    languages: dict[str, Any] = {}
    if config is not None:
        languages = {
            "source_language": config.source_language,
            "target_language": config.target_language,
            "data_dir": config.data,
        }
    return read_tfds_translations(dataset, split or part, **languages)


def run_subwords(config: TranslationConfig, data: TranslationData, kept: Path | None) -> Pair:
    """Returns the subwords of source and target; one object where they are one model.

    They are those of the stopped run in the folder `kept` (a ValueError if the configuration has
    others), given, or learned from the training pairs; not those of a warm start.
    """
    if kept is not None and (kept / SUBWORDS).is_dir():
        check_unchanged(kept, config, _OF_SUBWORDS, f"the pieces in {kept / SUBWORDS}")
        return _read_kept(kept / SUBWORDS)
    given = given_subwords(config)
    if given is not None:
        return given
    sides = [data.train.sources, data.train.targets or []]
    if config.subwords == "joint":
        joint = _learned(sides, config)
        return joint, joint
    return _learned(sides[:1], config), _learned(sides[1:], config)


def given_subwords(config: TranslationConfig) -> Pair | None:
    """Reads the subwords that the options name; one object where they are one model."""
    if config.source_subwords is None:
        return None
    source, target = Subword.from_file(config.source_subwords), config.target_subwords
    other = source if target is None else Subword.from_file(target)
    return source, source if other == source else other


def write_subwords(subwords: Pair, folder: Path) -> None:
    """Saves the subwords in a run directory."""
    if (folder / SUBWORDS).is_dir():
        return  # a resumed run has read them there
    source, target = subwords
    names = [_JOINT] if source is target else _SIDES
    with atomic_directory(folder / SUBWORDS) as place:
        for name, one in zip(names, subwords):
            one.save(place / name)


def _read_kept(folder: Path) -> Pair:
    if (folder / _JOINT).is_file():
        joint = Subword.from_file(folder / _JOINT)
        return joint, joint
    source, target = (Subword.from_file(folder / name) for name in _SIDES)
    return source, target


def _learned(texts: list[list[str]], config: TranslationConfig) -> Subword:
    # Nothing is written into the run directory before all of its input is checked.
    with tempfile.TemporaryDirectory() as folder:
        return train_subwords(
            texts,
            Path(folder, "learned.model"),
            model_type=config.subword_type,
            max_lines=config.subword_lines,
            **{name: getattr(config, name) for name in _LEARNED_WITH},
        )
