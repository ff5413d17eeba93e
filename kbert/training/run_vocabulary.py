"""The vocabulary of a run of pretraining: read from a file, or learned from the text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbert.data.corpus import Corpus
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece_training import count_words, train_wordpiece
from kbert.training.pretraining_config import PretrainingConfig

VOCABULARY = "vocab.txt"
# Characters that a vocabulary is learned from, in blocks drawn at random.
_MOST_CHARACTERS = 1 << 28


def run_vocabulary(
    config: PretrainingConfig, corpus: Any, kept: Path | None = None
) -> Vocabulary | None:
    """Returns the vocabulary of a new model, or None where an encoder brings its own.

    Args:
        config: The run's configuration.
        corpus: The text to learn it from, a `Corpus`; nothing is learned of records.
        kept: What a stopped run left, with the vocabulary that it began with.

    Raises:
        ValueError: The file is no vocabulary, or so few tokens cannot be learned.
        FileNotFoundError: There is no such file.
    """
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


def _documents(corpus: Corpus, seed: int) -> Iterator[tuple[str, ...]]:
    """The documents of each block, until there is enough."""
    read = 0
    for block in corpus.blocks(seed):
        yield block.documents
        read += sum(map(len, block.documents))
        if read >= _MOST_CHARACTERS:
            return
