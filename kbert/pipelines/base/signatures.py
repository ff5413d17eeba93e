"""The inputs of exported functions."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from kbert.text.sequences.packing import PackedText
from kbert.text.sequences.windows import WindowTokens

Signature = tuple[Callable[..., dict[str, Any]], list[tf.TensorSpec]]


def text_specs(pair: bool) -> list[tf.TensorSpec]:
    """The inputs of a signature on raw strings: `text`, or `text_a` and `text_b`, each (B,)."""
    names = ("text_a", "text_b") if pair else ("text",)
    return [tf.TensorSpec((None,), tf.string, name=name) for name in names]


def question_specs() -> list[tf.TensorSpec]:
    """The inputs of a signature on questions with contexts: `question`, `context`, each (B,)."""
    return [tf.TensorSpec((None,), tf.string, name=name) for name in ("question", "context")]


def token_specs() -> list[tf.TensorSpec]:
    """The inputs of a signature on token ids: two of (B, T) and `lengths` (B,)."""
    return [
        tf.TensorSpec((None, None), tf.int32, name="token_ids"),
        tf.TensorSpec((None, None), tf.int32, name="segment_ids"),
        tf.TensorSpec((None,), tf.int32, name="lengths"),
    ]


def token_inputs(token_ids: Any, segment_ids: Any, lengths: Any) -> dict[str, Any]:
    """Token ids (B, T) with lengths (B,) as the inputs of `Bert`.

    The mask is derived: a server that pads a batch of requests repeats cells of a row, and what it
    appends must not be seen.
    """
    real = tf.range(tf.shape(token_ids)[1]) < lengths[:, None]
    return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": real}


def model_inputs(packed: PackedText | WindowTokens) -> dict[str, Any]:
    """The part of packed text, or of windows of it, that an encoder takes."""
    return {
        "token_ids": packed.token_ids,
        "segment_ids": packed.segment_ids,
        "padding_mask": packed.padding_mask,
    }
