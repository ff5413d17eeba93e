"""The subword models of a translation run: learned, given, or kept from a stopped run."""

import tempfile
from pathlib import Path

from kbert.storage.atomic_directory import atomic_directory
from kbert.text.subword.subword import Subword
from kbert.text.subword.training import train_subwords
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.resume.resumed_run import check_unchanged
from kbert.training.translation.examples import TranslationData

# Names in the run directory.
SUBWORDS = "subwords"
_JOINT, _SIDES = "joint.model", ("source.model", "target.model")
# Options that determine the pieces.
_OF_SUBWORDS = (
    *("source_subwords", "target_subwords", "subwords", "subword_type", "vocabulary_size"),
    *("character_coverage", "normalization", "byte_fallback", "subword_lines"),
)
Pair = tuple[Subword, Subword]


def run_subwords(config: TranslationConfig, data: TranslationData, kept: Path | None) -> Pair:
    """Returns the subwords of source and target; one object where they are one model.

    Args:
        config: The run's configuration; not one with a warm start, which has subwords.
        data: Its pairs; new subwords are learned from the training pairs.
        kept: The folder of a stopped run, or None; its subwords are used.

    Raises:
        ValueError: A file is not a SentencePiece model, the number of pieces cannot be learned
            from these pairs, or the stopped run had other options of subwords.
        OSError: A file cannot be read.
    """
    if kept is not None and (kept / SUBWORDS).is_dir():
        check_unchanged(kept, config, _OF_SUBWORDS, f"the pieces in {kept / SUBWORDS}")
        return _read_kept(kept / SUBWORDS)
    if config.source_subwords is not None:
        source = Subword.from_file(config.source_subwords)
        target = config.target_subwords
        return source, source if target is None else Subword.from_file(target)
    sides = [data.train.sources, data.train.targets or []]
    if config.subwords == "joint":
        joint = _learned(sides, config)
        return joint, joint
    return _learned(sides[:1], config), _learned(sides[1:], config)


def write_subwords(subwords: Pair, folder: Path) -> None:
    """Saves the subwords in a run directory.

    Args:
        subwords: From `run_subwords`.
        folder: The run directory.
    """
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
            vocabulary_size=config.vocabulary_size,
            model_type=config.subword_type,
            character_coverage=config.character_coverage,
            normalization=config.normalization,
            byte_fallback=config.byte_fallback,
            max_lines=config.subword_lines,
            seed=config.seed,
        )
