"""Plain text as batches to pretrain on, made and masked on the fly, differently in each epoch.

Shapes: B batch, T tokens, P predictions.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import tensorflow as tf

from kbert.data.batches.dataset import read_ahead, unsharded
from kbert.data.pretraining.corpus import Corpus
from kbert.data.pretraining.examples import PACKINGS, ExampleMaker, PretrainingExamples
from kbert.data.pretraining.stream import ExampleStream
from kbert.text.sequences.masking import TokenMasking
from kbert.text.tokenizer import Tokenizer

OBJECTIVES = ("mlm_nsp", "mlm", "lm", "lm_nsp")
_AHEAD = 2
_ROWS_TOGETHER = 512
_COLUMNS = {
    "token_ids": tf.int32,
    "lengths": tf.int32,
    "first_lengths": tf.int32,
    "is_random_next": tf.int32,
    "seeds": tf.int64,
}
_Batch = dict[str, tf.Tensor]
_Assemble = Callable[[_Batch], tuple[_Batch, _Batch]]


def pretraining_dataset(
    corpus: Corpus,
    tokenizer: Tokenizer,
    *,
    batch_size: int,
    max_sequence_length: int = 128,
    max_predictions: int | None = None,
    objective: str = "mlm_nsp",
    short_share: float = 0.1,
    packing: str = PACKINGS[0],
    masked_share: float = 0.15,
    whole_words: bool = False,
    ngram: int = 1,
    **stream: Any,
) -> tf.data.Dataset:
    """Returns batches of one shape, without end unless `epochs` is given.

    Every example and its masks are a function of seed, epoch and position in the corpus: all
    workers together make the examples that one would make. Invalid text is only found while it is
    read.

    Args:
        batch_size: B, examples a batch.
        max_sequence_length: T; shorter examples are padded.
        max_predictions: P, the most masked tokens of an example; None: `masked_share` of T.
        objective: "mlm_nsp": tokens are masked, and the second text follows the first one or not;
            "mlm": tokens of one text are masked; "lm" and "lm_nsp": the same texts, of which each
            next token is predicted from left to right.
        short_share, packing: see `kbert.data.pretraining.examples.ExampleMaker`.
        masked_share, whole_words, ngram: see `kbert.text.sequences.masking.TokenMasking`.
        **stream: `seed`, `shuffle`, `window_blocks`, `worker`, `workers`, `epochs`, `threads` and
            `first_position`, see `kbert.data.pretraining.stream.ExampleStream`.

    Returns:
        A dataset of (inputs, targets). Inputs: "token_ids", "segment_ids" int32 (B, T),
        "padding_mask" bool (B, T), and where tokens are masked "masked_positions" int32 (B, P),
        0 for padding. Targets: "masked_tokens" int32 (B, P), or, from left to right, "next_tokens"
        int32 (B, T), the token that follows each; -1 for none; and with pairs "next_sentence" int32
        (B,): 0 where the second text follows, 1 where not. Its `stream` has positions to resume
        from.
    """
    if objective not in OBJECTIVES:
        raise ValueError(f"`objective` must be one of {OBJECTIVES}. Received: {objective!r}")
    has_pairs = objective.endswith("_nsp")
    maker = ExampleMaker(tokenizer, max_sequence_length, short_share, has_pairs, packing)
    examples = ExampleStream(corpus, maker, batch_size, **stream)
    masking = None
    if objective.startswith("mlm"):
        most = math.ceil(masked_share * max_sequence_length)
        most = most if max_predictions is None else max_predictions
        masking = TokenMasking(tokenizer.vocabulary, most, masked_share, whole_words, ngram)
    assemble = _assembler(masking, tokenizer, max_sequence_length, has_pairs)
    failures: list[Exception] = []
    dataset = read_ahead(unsharded(_batches(examples, assemble, failures)))
    dataset.stream, dataset.failures = examples, failures
    return dataset


@contextmanager
def own_errors(dataset: tf.data.Dataset) -> Iterator[None]:
    """Raises the original error of the files, such as a byte that is not UTF-8, while `dataset` is
    read.

    TensorFlow replaces an error within a dataset by one of its own, with a traceback in its message
    or without the name of the file. The dataset is one of `pretraining_dataset` or
    `kbert.data.pretraining.records_dataset`.
    """
    try:
        yield
    except tf.errors.OpError as error:
        if getattr(dataset, "failures", None):
            raise dataset.failures[0] from error
        if isinstance(error, tf.errors.DataLossError) and hasattr(dataset, "check_files"):
            dataset.check_files()
        raise


def _batches(
    examples: ExampleStream, assemble: _Assemble, failures: list[Exception]
) -> tf.data.Dataset:
    """Returns the batches of a stream, assembled several at a time, as small graphs are slow."""
    is_endless = examples.epochs is None
    size = examples.batch_size
    together = -(-_ROWS_TOGETHER // size)

    def generate() -> Iterator[dict[str, Any]]:
        batches = examples.batches()
        try:
            while group := list(islice(batches, together)):
                joined = PretrainingExamples.join(group)
                yield {name: getattr(joined, name) for name in _COLUMNS}
        except Exception as error:
            failures.append(error)
            raise

    # The last batches may be smaller.
    rows = together * size if is_endless else None
    signature = {
        name: tf.TensorSpec((None if name == "token_ids" else rows,), dtype)
        for name, dtype in _COLUMNS.items()
    }
    dataset = tf.data.Dataset.from_generator(generate, output_signature=signature)
    dataset = dataset.map(assemble, num_parallel_calls=_AHEAD, deterministic=True)
    dataset = dataset.rebatch(size, drop_remainder=is_endless)
    if is_endless:
        cardinality = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
        dataset = dataset.apply(cardinality)
    return dataset


def _assembler(
    masking: TokenMasking | None, tokenizer: Tokenizer, width: int, has_pairs: bool
) -> _Assemble:
    """Returns a map from a batch without padding to inputs and targets."""
    padding_id = tokenizer.vocabulary.padding_id

    @tf.autograph.experimental.do_not_convert  # AutoGraph would take seconds, and change nothing
    def assemble(batch: _Batch) -> tuple[_Batch, _Batch]:
        columns = tf.range(width)
        real = columns < batch["lengths"][:, tf.newaxis]  # (B, T)
        in_second = real & (columns >= batch["first_lengths"][:, tf.newaxis])
        rows = tf.RaggedTensor.from_row_lengths(
            batch["token_ids"], batch["lengths"], validate=False
        )
        token_ids = rows.to_tensor(padding_id, shape=(batch["lengths"].shape[0], width))
        inputs = {"segment_ids": tf.cast(in_second, tf.int32), "padding_mask": real}
        targets = {}
        if masking is not None:
            masked = masking.mask(token_ids, real, batch["seeds"])
            token_ids = masked.token_ids
            inputs["masked_positions"] = masked.positions
            targets["masked_tokens"] = masked.targets
        else:
            following = tf.where(real, token_ids, -1)[:, 1:]
            targets["next_tokens"] = tf.pad(following, [[0, 0], [0, 1]], constant_values=-1)
        if has_pairs:
            targets["next_sentence"] = batch["is_random_next"]
        return {"token_ids": token_ids, **inputs}, targets

    return assemble
