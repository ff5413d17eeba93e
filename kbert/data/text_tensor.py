"""Python strings as a string tensor."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def text_tensor(texts: Sequence[Any]) -> tf.Tensor:
    """Texts as TensorFlow holds them, in UTF-8.

    Lone surrogates, which UTF-8 cannot write, become three bytes that are not UTF-8: to a tokenizer
    the same as any broken byte.

    Args:
        texts: n str or bytes.

    Returns:
        String tensor (n,).

    Raises:
        TypeError: one is neither str nor bytes, such as None or NaN for a missing text.
    """
    encoded = []
    for index, text in enumerate(texts):
        if isinstance(text, str):
            text = text.encode("utf-8", "surrogatepass")
        elif not isinstance(text, bytes):
            raise TypeError(
                f"`texts` must hold str or bytes only. Received: {text!r} at index {index}"
            )
        encoded.append(text)
    return tf.constant(encoded, dtype=tf.string, shape=(len(encoded),))
