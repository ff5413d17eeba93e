"""Inputs of a model's functions: specs of their tensors, and the form that an encoder takes."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from kbert.text.sequences.packing import PackedText, WindowTokens

Signature = tuple[Callable[..., dict[str, Any]], list[tf.TensorSpec]]


def text_specs(pair: bool) -> list[tf.TensorSpec]:
    """Returns the specs of raw strings in a signature: `text`, or `text_a`, `text_b`; each (B,)."""
    names = ("text_a", "text_b") if pair else ("text",)
    return [tf.TensorSpec((None,), tf.string, name=name) for name in names]


def image_specs() -> list[tf.TensorSpec]:
    """Returns the spec of encoded images in a signature: `image` (B,), the bytes of files."""
    return [tf.TensorSpec((None,), tf.string, name="image")]


def question_specs() -> list[tf.TensorSpec]:
    """Returns the specs of questions with contexts: `question` and `context`, each (B,)."""
    return [tf.TensorSpec((None,), tf.string, name=name) for name in ("question", "context")]


def token_specs() -> list[tf.TensorSpec]:
    """Returns the specs of token ids in a signature: two of (B, T) and `lengths` (B,)."""
    names = ("token_ids", "segment_ids")
    ids = [tf.TensorSpec((None, None), tf.int32, name=name) for name in names]
    return [*ids, tf.TensorSpec((None,), tf.int32, name="lengths")]


def token_inputs(token_ids: Any, segment_ids: Any, lengths: Any) -> dict[str, Any]:
    """Returns the inputs of `Bert` for token ids (B, T) with lengths (B,).

    The mask is derived: a server that pads a batch of requests repeats values of a row, and the
    positions that it appends must be masked.
    """
    real = tf.range(tf.shape(token_ids)[1]) < lengths[:, None]
    return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": real}


def model_inputs(packed: PackedText | WindowTokens) -> dict[str, Any]:
    """Returns the encoder's inputs from packed text, or from windows of it."""
    return {name: getattr(packed, name) for name in ("token_ids", "segment_ids", "padding_mask")}


def label_maps(names: tuple[str, ...]) -> dict[str, Any]:
    """Returns the label maps of a Hugging Face configuration, for the names of classes."""
    ids = {name: i for i, name in enumerate(names)}
    return {"id2label": {str(i): name for i, name in enumerate(names)}, "label2id": ids}
