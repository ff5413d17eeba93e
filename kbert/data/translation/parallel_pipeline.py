"""From sentence pairs to batches: tokenized once, kept without padding, batched by both lengths.

Shapes: B rows, S source tokens, T target tokens, L tokens of BERT, M its width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import Epochs, padded_states, planned_batches, read_ahead
from kbert.data.batches.packed_examples import (
    PackedExamples,
    TokenRows,
    as_tensors,
    padded_rows,
    selected,
)
from kbert.data.features.text_features import TextFeatures
from kbert.data.translation.parallel_batches import Bucket, fixed_batch_plan, parallel_batch_plan
from kbert.optimization.losses import accumulation_weights

_AHEAD = 2
# Of each batch: indices, -1 for rows of padding; the padded length, 0 for that of its longest text;
# and the weight of its rows.
_BATCH = {
    "rows": tf.TensorSpec((None,), tf.int64),
    "width": tf.TensorSpec((), tf.int32),
    "weight": tf.TensorSpec((), tf.float32),
}


@dataclass(frozen=True)
class PackedPairs:
    """Sentences and their translations as token ids, and the sentences as a BERT reads them."""

    sources: TokenRows
    targets: TokenRows
    bert: PackedExamples | None = None

    def __len__(self) -> int:
        return len(self.sources)

    def select(self, rows: np.ndarray) -> "PackedPairs":
        """Returns some of the pairs, by their indices (k,)."""
        bert = None if self.bert is None else selected(self.bert, rows)
        return PackedPairs(selected(self.sources, rows), selected(self.targets, rows), bert)


def parallel_dataset(
    pairs: PackedPairs,
    batch_tokens: int = 4096,
    shuffle: bool = False,
    seed: int = 0,
    buckets: Sequence[Bucket] | None = None,
    accumulation_steps: int = 1,
    bert_states: TextFeatures | None = None,
    first_epoch: int = 0,
    first_batch: int = 0,
) -> tf.data.Dataset:
    """Returns length-bucketed batches of sentence pairs to train `Translation` on.

    Every pass is one epoch, all with the same number of batches; `shuffle` orders each differently.

    Args:
        batch_tokens: the most positions of a batch, rows times the longest source or target; see
            `kbert.data.translation.parallel_batches.parallel_batch_plan`.
        shuffle: whether batch order and composition depend on seed and epoch.
        buckets: fixed shapes of batches, instead of `batch_tokens`, of different lengths. L is then
            always that of the longest text of `pairs`.
        accumulation_steps: batches an update of the optimizer. If above 1, rows have the weights
            that make the update that of one large batch; batches of an incomplete update are left
            out.
        bert_states: precomputed hidden states of BERT for the sources, or None; needs `pairs.bert`.
        first_epoch: number of the first pass; above 0 where a run is resumed.
        first_batch: batches to skip; such a dataset is the rest of one epoch.

    Returns:
        A dataset of (inputs, targets), or (inputs, targets, weights): inputs "source_token_ids"
        int32 (B, S), "source_padding_mask" bool (B, S), "target_token_ids" int32 (B, T), which
        begin with the start token; for a BERT "bert_padding_mask" bool (B, L) and
        "bert_token_ids" int32 (B, L) or "bert_states" (B, L, M). Targets int32 (B, T), -1 for
        padding; weights float32 (B,).
    """
    _check(pairs, bert_states)
    plan = partial(_plan, pairs, batch_tokens, shuffle, seed, buckets, accumulation_steps)
    epochs = Epochs(first_epoch)
    dataset = planned_batches(plan, epochs, first_batch, is_constant=True, signature=_BATCH)

    tensors = PackedPairs(*map(as_tensors, (pairs.sources, pairs.targets, pairs.bert)))

    bert_width = 0  # of the longest text of each batch
    if buckets is not None and pairs.bert is not None:
        bert_width = int(pairs.bert.lengths.max(initial=0))

    def assemble(batch: dict[str, tf.Tensor]) -> Any:
        found = _padded(tensors, bert_states, batch, bert_width)
        if buckets is not None and len(buckets) == 1:
            found = _known_shapes(*found, buckets[0], bert_width)
        if accumulation_steps == 1:
            return found
        return *found, tf.fill(tf.shape(batch["rows"]), batch["weight"])

    dataset = read_ahead(dataset.map(assemble, num_parallel_calls=_AHEAD))
    dataset.epochs = epochs  # `fit` of kbert's models sets their number
    return dataset


def _plan(
    pairs: PackedPairs,
    batch_tokens: int,
    shuffle: bool,
    seed: int,
    buckets: Sequence[Bucket] | None,
    accumulation_steps: int,
    epoch: int,
) -> list[dict[str, Any]]:
    """Returns the batches of an epoch, with the elements of `_BATCH`."""
    lengths = (pairs.sources.lengths, pairs.targets.lengths)
    random: dict[str, Any] = {"shuffle": shuffle, "seed": seed, "epoch": epoch}
    if buckets is None:
        rows = parallel_batch_plan(*lengths, batch_tokens, **random)
        widths = [0] * len(rows)
    else:
        batches = fixed_batch_plan(*lengths, buckets, **random)
        rows = [batch.padded_indices for batch in batches]
        widths = [batch.bucket.length for batch in batches]
    rows = rows[: len(rows) - len(rows) % accumulation_steps]
    tokens = [int(lengths[1][some[some >= 0]].sum()) for some in rows]
    weights = accumulation_weights(tokens, accumulation_steps)
    return [
        {"rows": some, "width": width, "weight": weight}
        for some, width, weight in zip(rows, widths, weights)
    ]


def _padded(
    pairs: PackedPairs, bert_states: Any, batch: dict[str, tf.Tensor], bert_width: int
) -> tuple[Any, Any]:
    rows = batch["rows"]
    sources, real = padded_rows(pairs.sources, rows, batch["width"])
    targets, counts = padded_rows(pairs.targets, rows, batch["width"])
    starts = tf.fill((tf.shape(rows)[0], 1), pairs.targets.start_id)
    inputs = {
        "source_token_ids": sources,
        "source_padding_mask": real,
        "target_token_ids": tf.concat([starts, targets[:, :-1]], axis=1),
    }
    if pairs.bert is not None:
        inputs |= _bert_inputs(pairs.bert, bert_states, rows, bert_width)
    return inputs, tf.where(counts, targets, -1)


def _bert_inputs(
    packed: PackedExamples, features: TextFeatures | None, rows: tf.Tensor, width: int
) -> dict[str, tf.Tensor]:
    """Returns the inputs of a fused model's BERT, or its precomputed hidden states.

    They have a length of `width`, or for 0 that of the longest text of the batch.
    """
    ids, real = padded_rows(packed, rows, width)
    if features is None:
        return {"bert_token_ids": ids, "bert_padding_mask": real}
    return {"bert_states": padded_states(features, rows, ids), "bert_padding_mask": real}


def _known_shapes(
    inputs: dict[str, tf.Tensor], targets: tf.Tensor, bucket: Bucket, bert_width: int
) -> tuple[Any, Any]:
    """Returns a batch of the bucket with its shapes known before the first one."""
    shaped = {}
    for name, tensor in inputs.items():
        width = bert_width if name.startswith("bert_") else bucket.length
        shaped[name] = tf.ensure_shape(tensor, (bucket.rows, width, *tensor.shape[2:]))
    return shaped, tf.ensure_shape(targets, (bucket.rows, bucket.length))


def _check(pairs: PackedPairs, bert_states: Any) -> None:
    if len(pairs.sources) != len(pairs.targets):
        raise ValueError(
            "`pairs` must have a target for each source. Received: "
            f"{len(pairs.sources)} sources and {len(pairs.targets)} targets"
        )
    if bert_states is None:
        return
    if pairs.bert is None:
        raise ValueError("`pairs.bert` must be given with `bert_states`. Received: None")
    if not np.array_equal(bert_states.lengths, pairs.bert.lengths):
        raise ValueError(
            "`bert_states` must be of the texts in `pairs`. Received: "
            f"{len(bert_states.lengths)} texts, of other lengths than the {len(pairs.bert)}"
        )
