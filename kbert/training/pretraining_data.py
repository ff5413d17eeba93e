"""The text of a run of pretraining: files found, checked, and turned into batches."""

import glob
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import tensorflow as tf

from kbert.data.corpus import Corpus
from kbert.data.pretraining_dataset import pretraining_dataset
from kbert.data.pretraining_examples import ExampleMaker
from kbert.data.pretraining_stream import CorpusPosition, ExampleStream
from kbert.tasks.pretraining_objectives import has_pairs
from kbert.text.wordpiece import WordPiece
from kbert.training.pretraining_config import PretrainingConfig
from kbert.training.team import own_share, told_to_all

# Of a position; of several workers each has its own.
_PLACE = ("epoch", "window", "example")
_MASKING = ("max_predictions", "masked_share", "whole_words", "ngram")


@dataclass(frozen=True)
class PretrainingText:
    """The text of a run.

    Attributes:
        train: What is learned from.
        validation: What is measured, or None.
    """

    train: Corpus
    validation: Corpus | None

    def about(self) -> dict[str, Any]:
        """What a report says of it, as JSON can hold it."""
        parts = {"train": self.train, "validation": self.validation}
        return {
            name: {
                "files": len(corpus.files),
                "bytes": sum(file.stat().st_size for file in corpus.files),
                "sha256": corpus.fingerprint,
                "source": str(corpus),
            }
            for name, corpus in parts.items()
            if corpus is not None
        }


def read_text(config: PretrainingConfig) -> PretrainingText:
    """Finds the files of a run and looks at the beginning of each.

    Args:
        config: The run's configuration.

    Raises:
        ValueError: A file is no text, all are empty, or one is in both parts.
        FileNotFoundError: A pattern matches no file.
    """
    files = found_files("text", config.text or [])
    settings: dict[str, Any] = {
        "separator": config.separator,
        "encoding_errors": config.encoding_errors,
    }
    if config.validation is None:
        return PretrainingText(Corpus(files, **settings), None)
    held_out = found_files("validation", config.validation)
    learned = {file.resolve() for file in files}
    both = [file for file in held_out if file.resolve() in learned]
    if both:
        raise ValueError(
            "`validation` must be other files than `text`: what was learned says nothing. "
            f"Received in both: {both[0]}"
        )
    return PretrainingText(Corpus(files, **settings), Corpus(held_out, **settings))


def found_files(key: str, patterns: Sequence[str]) -> list[Path]:
    """Returns the files that names and patterns stand for, each once.

    Args:
        key: What the patterns are, for the message.
        patterns: Names of files, or patterns with `*`, `?`, `[...]` and `**`; the files of a
            pattern are sorted.

    Raises:
        FileNotFoundError: One stands for no file.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        # A file may have a star in its name.
        names = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))
        files = [Path(name) for name in names if not Path(name).is_dir()]
        if not files:
            raise FileNotFoundError(
                f"`{key}` must be files, or patterns that match some. Received: {pattern!r}"
            )
        found.update(dict.fromkeys(files))
    return list(found)


def plain_tokenizer(tokenizer: WordPiece) -> WordPiece:
    """The tokenizer for text to learn from, in which "[MASK]" is text as any other.

    Args:
        tokenizer: The model's.
    """
    return WordPiece.from_config({**tokenizer.get_config(), "special_tokens_in_text": False})


def check_examples(config: PretrainingConfig, text: PretrainingText, tokenizer: WordPiece) -> None:
    """Makes a first example of each part, before a training that would end without one.

    Args:
        config: The run's configuration.
        text: Its text.
        tokenizer: The model's.

    Raises:
        ValueError: A part has no example.
    """
    pairs = has_pairs(config.objective)
    length = config.max_sequence_length
    maker = ExampleMaker(plain_tokenizer(tokenizer), length, config.short_share, pairs)
    for corpus in (text.train, text.validation):
        if corpus is not None:
            next(ExampleStream(corpus, maker, 1, shuffle=False, epochs=1).batches())


def train_batches(
    config: PretrainingConfig, corpus: Corpus, tokenizer: WordPiece, place: dict[str, int]
) -> Any:
    """Batches to train on, without end.

    Args:
        config: The run's configuration.
        corpus: The text.
        tokenizer: The model's.
        place: Where to go on, from `place_after`; empty for the beginning.

    Returns:
        A dataset with `stream`; see `kbert.data.pretraining_dataset`.
    """
    share = own_share(config)
    number = share.get("worker", 0)
    own = {
        name: place.get(f"{name}{_of_worker(number)}", place.get(name, 0)) for name in _PLACE
    }
    return _batches(config, corpus, tokenizer, first_position=CorpusPosition(**own), **share)


def place_after(dataset: Any, batches: int) -> dict[str, int]:
    """Where a dataset is after so many batches, for `train_batches`.

    Args:
        dataset: From `train_batches`.
        batches: How many have been trained on.
    """
    own = asdict(dataset.stream.position(batches))
    return {
        f"{name}{_of_worker(number)}": value
        for number, values in enumerate(told_to_all([own[name] for name in _PLACE]))
        for name, value in zip(_PLACE, values)
    }


def _of_worker(number: int) -> str:
    """What the numbers of a worker's place are called behind their names."""
    return f" of worker {number}" if number else ""


def next_pass(place: dict[str, int]) -> dict[str, int]:
    """The beginning of the next pass over the text.

    Args:
        place: A place within a pass, from `place_after`.
    """
    return asdict(CorpusPosition(epoch=place.get("epoch", -1) + 1))


def validation_batches(
    config: PretrainingConfig, corpus: Corpus, tokenizer: WordPiece, steps: int | None
) -> Any:
    """Batches to measure, the same ones each time.

    Args:
        config: The run's configuration.
        corpus: The held-out text.
        tokenizer: The model's.
        steps: How many, the first ones; None for all.
    """
    dataset = _batches(config, corpus, tokenizer, epochs=1, shuffle=False)
    # Keras takes an end that it was not told of for a mistake, and warns.
    count = sum(1 for _ in islice(dataset.stream.batches(), steps))
    return dataset.take(count).apply(tf.data.experimental.assert_cardinality(count))


def _batches(
    config: PretrainingConfig, corpus: Corpus, tokenizer: WordPiece, **stream: Any
) -> Any:
    masking = {name: getattr(config, name) for name in _MASKING}
    return pretraining_dataset(
        corpus,
        plain_tokenizer(tokenizer),
        max_sequence_length=config.max_sequence_length,
        objective=config.objective,
        short_share=config.short_share,
        seed=config.seed,
        **masking,
        **{"batch_size": config.batch_size, **stream},
    )
