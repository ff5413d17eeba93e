"""Batches as JSON, in the format of TF Serving's REST API.

Texts are strings; bytes that are not UTF-8, or hold a NUL, are {"b64": ...}; non-finite numbers are
the bare words NaN, Infinity and -Infinity. Source: tensorflow/serving, `g3doc/api_rest.md`, and
abseil, `strings/escaping.h`: base64 may be broken into lines, and its padding may be missing.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

BASE64 = "b64"
_BFLOAT16 = tf.bfloat16.as_numpy_dtype


class _NoBase64(ValueError):
    pass


def to_json(batch: np.ndarray) -> Any:
    """Converts a batch to nested lists for JSON; strings are bytes in an array of objects."""
    if batch.dtype.kind == "O":
        return _nested(batch, _text)
    if batch.dtype.itemsize < 8 and (batch.dtype.kind == "f" or batch.dtype == _BFLOAT16):
        # The fewest digits that restore a float32, not those of the double that is next to it.
        return _nested(batch.astype(np.float32), lambda number: float(str(number)))
    return batch.tolist()


def from_json(value: Any, dtype: tf.DType) -> np.ndarray:
    """Converts nested lists to a batch.

    Raises ValueError if they are not all of one shape and dtype, or for a "b64" that is no base64.
    """
    try:
        if dtype != tf.string:
            return numbers_of(value, dtype)
        # Where lists have different lengths, they are the elements of this array.
        found = np.array(value, object)
        found.reshape(-1)[:] = [_bytes(leaf) for leaf in found.ravel()]
        return found
    except _NoBase64:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(
            f"the value must be lists of one shape with elements of type {dtype.name}. "
            f"Received: {error}"
        ) from error


def numbers_of(value: Any, dtype: tf.DType) -> np.ndarray:
    """Returns numbers of a dtype; NumPy alone would truncate 1.5 to 1 and read "1" as 1.

    Raises ValueError for lists of different lengths, and TypeError for numbers of another kind.
    """
    if getattr(value, "dtype", None) == dtype.as_numpy_dtype:
        return np.asarray(value)
    try:
        found = np.asarray(value)
    except ValueError:  # of NumPy, on its own arrays
        raise ValueError("lists of different lengths") from None
    kinds = "b" if dtype.is_bool else "iu" if dtype.is_integer else "iuf"
    if found.size and found.dtype.kind not in kinds:
        fitting = {"b": bool, "iu": int, "iuf": int | float}[kinds]
        others = (leaf for leaf in _leaves(value) if not isinstance(leaf, fitting))
        wrong = next((f"{_shown(leaf)}, which is no {dtype.name}" for leaf in others), None)
        raise TypeError(wrong or f"elements of type {found.dtype.name}")
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
    return {BASE64: base64.b64encode(content).decode("ascii")} if "\0" in text else text


def _bytes(leaf: Any) -> bytes:
    if isinstance(leaf, str):
        return leaf.encode("utf-8", "surrogatepass")
    if isinstance(leaf, list):
        raise ValueError("lists of different lengths")
    if isinstance(leaf, dict) and set(leaf) == {BASE64}:
        return _decoded(leaf[BASE64])
    raise TypeError(f"{_shown(leaf)}, which is no text")


def _leaves(value: Any) -> Iterator[Any]:
    if not isinstance(value, list):
        yield value
        return
    for one in value:
        yield from _leaves(one)


def _shown(leaf: Any) -> str:
    """Returns the beginning of a value in JSON, as it came."""
    return json.dumps(leaf, default=repr)[:80]


def _decoded(code: Any) -> bytes:
    if not isinstance(code, str):
        raise _NoBase64(
            f'each "{BASE64}" must be a string of base64. Received: {type(code).__name__}'
        )
    joined = "".join(code.split())
    padding = "" if "=" in joined else "=" * (-len(joined) % 4)
    try:
        return base64.b64decode(joined + padding, validate=True)
    except ValueError as error:
        shown = f"{len(code)} characters, beginning with {code[:20]!r}"
        raise _NoBase64(f'each "{BASE64}" must be base64. Received: {shown}: {error}') from error
