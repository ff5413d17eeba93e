"""Batches as JSON, in the format of TF Serving's REST API.

Texts are strings; bytes that are not UTF-8, or hold a NUL, are {"b64": ...}; non-finite numbers are
the bare words NaN, Infinity and -Infinity. Source: tensorflow/serving, `g3doc/api_rest.md`.
"""

import base64
import binascii
from typing import Any

import numpy as np
import tensorflow as tf

_BASE64 = "b64"
_BFLOAT16 = tf.bfloat16.as_numpy_dtype


def to_json(batch: np.ndarray) -> Any:
    """Converts a batch to nested lists for JSON; strings are bytes in an array of objects."""
    if batch.dtype.kind == "O":
        return _nested(batch, _text)
    if batch.dtype.itemsize < 8 and (batch.dtype.kind == "f" or batch.dtype == _BFLOAT16):
        # The fewest digits that restore a float32, not those of the double that is next to it.
        return _nested(batch.astype(np.float32), lambda number: float(str(number)))
    return batch.tolist()


def from_json(value: Any, dtype: tf.DType) -> np.ndarray:
    """Converts nested lists to a batch; ValueError if they are not all of one shape and dtype."""
    try:
        if dtype != tf.string:
            return _numbers(value, dtype)
        # Where lists have different lengths, they are the elements of this array.
        found = np.array(value, object)
        found.reshape(-1)[:] = [_bytes(leaf) for leaf in found.ravel()]
        return found
    except (ValueError, TypeError, OverflowError, binascii.Error) as error:
        raise ValueError(
            f"`value` must be lists of one shape with elements of type {dtype.name}. "
            f"Received: {error}"
        ) from error


def _numbers(value: Any, dtype: tf.DType) -> np.ndarray:
    """Returns numbers of a dtype; NumPy alone would truncate 1.5 to 1 and read "1" as 1."""
    found = np.asarray(value)
    kinds = "b" if dtype.is_bool else "iu" if dtype.is_integer else "iuf"
    if found.size and found.dtype.kind not in kinds:
        raise TypeError(f"elements of type {found.dtype.name}")
    return np.asarray(value, dtype.as_numpy_dtype)


def _nested(batch: np.ndarray, leaf: Any) -> Any:
    return [_nested(row, leaf) for row in batch] if isinstance(batch, np.ndarray) else leaf(batch)


def _text(content: Any) -> Any:
    if isinstance(content, str):
        return content
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    return {_BASE64: base64.b64encode(content).decode("ascii")} if "\0" in text else text


def _bytes(leaf: Any) -> bytes:
    if isinstance(leaf, str):
        return leaf.encode("utf-8", "surrogatepass")
    if isinstance(leaf, list):
        raise ValueError("lists of different lengths")
    if isinstance(leaf, dict) and set(leaf) == {_BASE64} and isinstance(leaf[_BASE64], str):
        return base64.b64decode(leaf[_BASE64], validate=True)
    raise TypeError(f"{str(leaf)[:80]!r} is no text")
