"""From images and captions to batches: captions tokenized once, images read row by row.

Shapes: n images, m captions, B batch, T caption length, L places of a map, M width of its vectors,
H and W height and width of an image.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import Epochs, planned_batches, read_ahead
from kbert.data.batches.packed_examples import TokenRows, as_tensors, padded_rows, plain
from kbert.data.batches.plans import batch_plan, check_fixed_length, whole_batches

_AHEAD = 2


@dataclass(frozen=True)
class PackedCaptions:
    """Images as numbers, and their captions as token ids."""

    images: np.ndarray  # features (n, L, M), or pixels uint8 (n, H, W, 3); maybe memory-mapped
    rows: np.ndarray  # int64 (m,), the image of each caption
    captions: TokenRows

    def __len__(self) -> int:
        return len(self.captions)

    @property
    def are_pixels(self) -> bool:
        """True where the images are pixels, not features."""
        return self.images.ndim == 4


def caption_dataset(
    packed: PackedCaptions,
    batch_size: int = 32,
    shuffle: bool = False,
    seed: int = 0,
    fixed_length: int | None = None,
    first_epoch: int = 0,
    first_batch: int = 0,
) -> tf.data.Dataset:
    """Returns batches of captions of similar length, each with its image.

    Every pass is one epoch; `shuffle` orders each differently.

    Args:
        packed: from `Captioner.pack`.
        batch_size: captions a batch.
        shuffle: whether batch order and composition depend on seed and epoch.
        fixed_length: T of all batches, and only whole ones, where shapes must not change.
        first_epoch: number of the first pass; above 0 where a run is resumed.
        first_batch: batches to skip; such a dataset is the rest of one epoch.

    Returns:
        A dataset of (inputs, targets): inputs `features` float32 (B, L, M) or `pixels` uint8
        (B, H, W, 3), and `target_token_ids` int32 (B, T), which begin with the start token;
        targets int32 (B, T), -1 for padding.

    Raises:
        ValueError: a caption is longer than `fixed_length`.
    """
    lengths = packed.captions.lengths
    check_fixed_length(fixed_length, lengths)
    plan = partial(_plan, lengths, batch_size, shuffle, seed, fixed_length is not None)
    epochs = Epochs(first_epoch)
    dataset = planned_batches(plan, epochs, first_batch, is_constant=True)
    captions, image_of = as_tensors(packed.captions), tf.constant(packed.rows)
    name = "pixels" if packed.are_pixels else "features"
    # Slices of np.memmap would cost more than those of a plain array.
    images = packed.images.view(np.ndarray)

    def assemble(rows: tf.Tensor) -> Any:
        ids, real = padded_rows(captions, rows, fixed_length or 0)
        starts = tf.fill((tf.shape(rows)[0], 1), captions.start_id)
        # Only training runs this, so a call back into Python does no harm.
        chosen = tf.numpy_function(images.__getitem__, [tf.gather(image_of, rows)], images.dtype)
        chosen = tf.ensure_shape(chosen, (None, *images.shape[1:]))
        inputs = {
            name: chosen if packed.are_pixels else tf.cast(chosen, tf.float32),
            "target_token_ids": tf.concat([starts, ids[:, :-1]], axis=1),
        }
        targets = tf.where(real, ids, -1)
        if fixed_length is not None:
            inputs = {k: tf.ensure_shape(v, (batch_size, *v.shape[1:])) for k, v in inputs.items()}
            targets = tf.ensure_shape(targets, (batch_size, fixed_length))
        return inputs, targets

    dataset = read_ahead(dataset.map(plain(assemble), num_parallel_calls=_AHEAD))
    dataset.epochs = epochs  # `fit` of kbert's models sets their number
    return dataset


def _plan(
    lengths: np.ndarray, rows: int, shuffle: bool, seed: int, only_whole: bool, epoch: int
) -> list[np.ndarray]:
    found = batch_plan(lengths, rows, None, shuffle, seed, epoch)
    return whole_batches(found, rows) if only_whole else found
