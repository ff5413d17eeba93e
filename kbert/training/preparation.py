"""Records to pretrain on, made of plain text before any training."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbert.data.corpus import Corpus
from kbert.data.pretraining_dataset import pretraining_dataset
from kbert.data.pretraining_records import serialized, write_records
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece import WordPiece
from kbert.training.preparation_config import PreparationConfig
from kbert.training.pretraining_data import found_files

_ROWS = 64
_EXAMPLES = (
    *("objective", "max_sequence_length", "max_predictions", "masked_share", "short_share"),
    *("whole_words", "ngram", "seed"),
)


def prepare_records(config: PreparationConfig) -> int:
    """Makes examples of text, and writes them as TFRecords; the folder appears whole.

    Memory does not grow with the text. The examples are in its order, pass by pass.

    Args:
        config: The configuration.

    Returns:
        The number of examples.

    Raises:
        ValueError: The files are no text, or hold no example for each shard.
        FileNotFoundError: A file is missing.
        FileExistsError: The folder is there already.
    """
    output = Path(config.output or "")
    if output.exists() and not config.overwrite:
        raise FileExistsError(
            f"`output` must not exist yet, unless overwrite is true. Received: output={output}"
        )
    corpus = prepared_corpus(config)
    tokenizer = WordPiece(Vocabulary.from_file(config.vocabulary or ""), config.lowercase)
    batches = pretraining_dataset(
        corpus,
        tokenizer,
        batch_size=_ROWS,
        shuffle=False,
        epochs=config.copies,
        **example_settings(config),
    )
    about = {"text": str(corpus), "fingerprint": corpus.fingerprint, "config": config.to_dict()}
    return write_records(
        batches, output, config.shards, config.compress, config.overwrite, about=about
    )


def prepared_corpus(config: PreparationConfig) -> Corpus:
    """The text of a configuration.

    Args:
        config: The configuration.
    """
    files = found_files("text", config.text or [])
    return Corpus(files, config.separator, config.block_bytes, config.encoding_errors)


def example_settings(config: PreparationConfig) -> dict[str, Any]:
    """How examples are made, for `pretraining_dataset`.

    Args:
        config: The configuration.
    """
    return {name: getattr(config, name) for name in _EXAMPLES}


def records_of_part(part: int, parts: int, settings: dict[str, Any]) -> Iterator[bytes]:
    """The examples of a part of the text, as records.

    Args:
        part: Number of the part, from 0.
        parts: How many there are.
        settings: The keys and values of a `PreparationConfig`.

    Yields:
        Serialized tf.train.Example.

    Raises:
        ValueError: The part has no example.
    """
    config = PreparationConfig.from_dict(settings)
    tokenizer = WordPiece(Vocabulary.from_file(config.vocabulary or ""), config.lowercase)
    batches = pretraining_dataset(
        prepared_corpus(config),
        tokenizer,
        batch_size=_ROWS,
        shuffle=False,
        epochs=config.copies,
        worker=part,
        workers=parts,
        **example_settings(config),
    )
    for inputs, targets in batches:
        yield from serialized(inputs, targets)
