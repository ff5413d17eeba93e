"""Python strings as a string tensor."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from kbert.data.tables.columns import without_surrogates


def text_tensor(texts: Sequence[Any]) -> tf.Tensor:
    """Converts texts to a string tensor, in UTF-8.

    Lone surrogates, which UTF-8 cannot write, become U+FFFD one by one, so that code points are
    counted as Python counts them.

    Args:
        texts: n str or bytes.

    Returns:
        String tensor (n,).

    Raises:
        TypeError: a text is neither str nor bytes, such as None or NaN for a missing one.
    """
    encoded = []
    for index, text in enumerate(texts):
        if isinstance(text, str):
            text = without_surrogates(text, f"`texts[{index}]`", "replace").encode()
        elif not isinstance(text, bytes):
            raise TypeError(
                f"`texts` must hold str or bytes only. Received: {text!r} at index {index}"
            )
        encoded.append(text)
    return tf.constant(encoded, dtype=tf.string, shape=(len(encoded),))
