"""Requests that do not fit a signature, asked without the checks of a client or of Python.

A server passes them on to the graph, which must refuse each by itself: answered, they would be
numbers that mean nothing, and in a batch they would fail the requests of others.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from kbert.serving.format.signatures import Signature, SignatureTensor
from kbert.serving.loading.session_loader import Session, SessionError

_REFUSED = "INVALID_ARGUMENT"


def bad_request_problems(session: Session) -> Iterator[str]:
    """Finds signatures that do not refuse another rank by the input's name, or fail without rows.
    """
    for name, signature in session.signatures.items():
        for key, tensor in signature.inputs.items():
            rows = {key: _filled(tensor, extra=1)}
            what = f"The signature {name!r} does not refuse another rank of {key!r}"
            try:
                session.ask(name, {**_one_row(signature), **rows})
            except SessionError as error:
                if _REFUSED not in str(error) or f"`{key}`" not in str(error):
                    yield f"{what} by name: {str(error).splitlines()[0][:200]}"
            else:
                yield f"{what}: it answers."
        none = {key: batch[:0] for key, batch in _one_row(signature).items()}
        try:
            found = session.ask(name, none)
        except SessionError as error:
            yield f"The signature {name!r} fails without rows: {str(error).splitlines()[0][:200]}"
        else:
            for key, batch in found.items():
                if batch.shape[:1] != (0,):
                    shape = batch.shape
                    yield f"The signature {name!r} gives {key!r} the shape {shape} without rows."


def _one_row(signature: Signature) -> Mapping[str, np.ndarray]:
    return {name: _filled(tensor) for name, tensor in signature.inputs.items()}


def _filled(tensor: SignatureTensor, extra: int = 0) -> np.ndarray:
    """Returns one row of ones, or of empty strings, of a rank that is larger by `extra`."""
    shape = [size or 1 for size in tensor.shape or (None,)] + [1] * extra
    if tensor.dtype.name == "string":
        return np.full(shape, b"", object)
    return np.ones(shape, tensor.dtype.as_numpy_dtype)
