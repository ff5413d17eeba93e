"""The vocabulary of a pretraining run: read from a file, or learned from the text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbert.data.pretraining.corpus import Corpus
from kbert.text.wordpiece.training import count_words, train_wordpiece
from kbert.text.wordpiece.vocabulary import Vocabulary
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.resume.resumed_run import check_unchanged

VOCABULARY = "vocab.txt"
# Number of characters from which a vocabulary is learned, in random blocks.
_MOST_CHARACTERS = 1 << 28
# Options that determine the tokens.
_OF_VOCABULARY = ("vocabulary", "vocabulary_size", "lowercase")


def run_vocabulary(
    config: PretrainingConfig, corpus: Any, kept: Path | None = None
) -> Vocabulary | None:
    """Returns the vocabulary of a new model, or None where an encoder brings its own.

    Args:
        config: The run's configuration.
        corpus: The text to learn it from, a `Corpus`; nothing is learned from records.
        kept: The folder of a stopped run, with the vocabulary that it began with.

    Raises:
        ValueError: The file is not a vocabulary, the vocabulary size is too small to be learned,
            or the stopped run has its tokens from elsewhere.
        FileNotFoundError: There is no such file.
    """
    if kept is not None and (kept / VOCABULARY).is_file():
        check_unchanged(kept, config, _OF_VOCABULARY, f"the tokens in {kept / VOCABULARY}")
        if config.encoder is None:
            return Vocabulary.from_file(kept / VOCABULARY)
    if config.encoder is not None:
        return None
    if config.vocabulary_size is None:
        return Vocabulary.from_file(config.vocabulary or "")
    counts = count_words(_documents(corpus, config.seed), config.lowercase)
    if not counts:
        raise ValueError(f"`text` must hold words to learn a vocabulary from. Received: {corpus}")
    return train_wordpiece(counts, config.vocabulary_size)


def _documents(corpus: Corpus, seed: int) -> Iterator[tuple[str, ...]]:
    """Yields the documents of each block, until there are enough characters."""
    read = 0
    for block in corpus.blocks(seed):
        yield block.documents
        read += sum(map(len, block.documents))
        if read >= _MOST_CHARACTERS:
            return
