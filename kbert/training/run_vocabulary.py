"""The vocabulary of a run of pretraining: read from a file, or learned from the text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbert.data.corpus import Corpus
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece_training import count_words, train_wordpiece
from kbert.training.config_file import read_config_file
from kbert.training.pretraining_config import PretrainingConfig
from kbert.training.resumed_run import changed_keys
from kbert.training.run_directory import CONFIG

VOCABULARY = "vocab.txt"
# Characters that a vocabulary is learned from, in blocks drawn at random.
_MOST_CHARACTERS = 1 << 28
# What decides which tokens there are.
_OF_VOCABULARY = ("vocabulary", "vocabulary_size", "lowercase")


def run_vocabulary(
    config: PretrainingConfig, corpus: Any, kept: Path | None = None
) -> Vocabulary | None:
    """Returns the vocabulary of a new model, or None where an encoder brings its own.

    Args:
        config: The run's configuration.
        corpus: The text to learn it from, a `Corpus`; nothing is learned of records.
        kept: What a stopped run left, with the vocabulary that it began with.

    Raises:
        ValueError: The file is no vocabulary, so few tokens cannot be learned, or the stopped run
            had its tokens from elsewhere.
        FileNotFoundError: There is no such file.
    """
    if kept is not None and (kept / VOCABULARY).is_file():
        _check_unchanged(kept, config)
    if config.encoder is not None:
        return None
    if kept is not None and (kept / VOCABULARY).is_file():
        return Vocabulary.from_file(kept / VOCABULARY)
    if config.vocabulary_size is None:
        return Vocabulary.from_file(config.vocabulary or "")
    counts = count_words(_documents(corpus, config.seed), config.lowercase)
    if not counts:
        raise ValueError(f"`text` must hold words to learn a vocabulary from. Received: {corpus}")
    return train_wordpiece(counts, config.vocabulary_size)


def _check_unchanged(kept: Path, config: PretrainingConfig) -> None:
    if not (kept / CONFIG).is_file():
        return
    changed = set(changed_keys(read_config_file(kept / CONFIG), config)) & set(_OF_VOCABULARY)
    if changed:
        raise ValueError(
            f"{', '.join(f'`{key}`' for key in sorted(changed))} must be as the run began with, "
            f"even with allow_config_change: its weights are of the tokens in {kept / VOCABULARY}. "
            "Set overwrite to begin anew"
        )


def _documents(corpus: Corpus, seed: int) -> Iterator[tuple[str, ...]]:
    """The documents of each block, until there is enough."""
    read = 0
    for block in corpus.blocks(seed):
        yield block.documents
        read += sum(map(len, block.documents))
        if read >= _MOST_CHARACTERS:
            return
