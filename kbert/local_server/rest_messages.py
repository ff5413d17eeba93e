"""Predict requests and answers of the REST API: JSON -> arrays -> JSON.

Source: tensorflow/serving, `g3doc/api_rest.md`, and `util/json_tensor.cc`.
"""

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from starlette.requests import ClientDisconnect, Request

from kbert.local_server.limits import Refusal, invalid
from kbert.local_server.model_store import check_names
from kbert.serving.format.json_tensors import BASE64, from_json, to_json
from kbert.serving.format.signatures import SERVING_DEFAULT, Signature

# Of a body that is too large, this many times the limit is read and discarded, so that the client,
# which still sends, can read the answer; then the connection is closed.
_MORE = 4
_LINGER = 5.0
_ROWS, _COLUMNS = "instances", "inputs"
_BYTES = "_bytes"


async def read_body(request: Request, most: int, deadline: float) -> bytes:
    """Reads a body of at most so many bytes, until a time on the clock of `time.monotonic`.

    Refuses one that is larger (413), or does not come in time (408).
    """
    told = request.headers.get("content-length", "")
    size = int(told) if told.isdecimal() else 0
    parts: list[bytes] = []
    stream = request.stream()
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            if size <= most:
                size = 0
                async for part in stream:
                    size += len(part)
                    if size > most:
                        break
                    parts.append(part)
                else:
                    return b"".join(parts)
    except ClientDisconnect as error:
        raise Refusal("CANCELLED", "The client has gone") from error
    except TimeoutError as error:
        raise Refusal("DEADLINE_EXCEEDED", "The request did not arrive in time", 408) from error
    parts.clear()
    # A client that asks first (Expect: 100-continue, such as curl) sends nothing more.
    if "100-continue" not in request.headers.get("expect", "").lower():
        size = 0
        with contextlib.suppress(TimeoutError, ClientDisconnect):
            async with asyncio.timeout(_LINGER):
                async for part in stream:
                    size += len(part)
                    if size >= _MORE * most:
                        break
    raise Refusal("INVALID_ARGUMENT", f"The request is larger than {most} bytes", 413)


@dataclass(frozen=True)
class PredictBody:
    """A parsed body: the signature's name, and the value of "instances" (`in_rows`) or "inputs"."""

    signature: str
    value: Any
    in_rows: bool


def parsed(body: bytes) -> PredictBody:
    """Parses a body; refuses one that is not JSON of this form."""
    try:
        # JSON between systems is UTF-8 (RFC 8259); of bytes, `json` also takes other encodings.
        found = json.loads(body.decode("utf-8-sig"))
    except RecursionError as error:
        raise invalid("JSON Parse error: nested too deeply") from error
    except ValueError as error:
        raise invalid(f"JSON Parse error: {error}") from error
    if rb"\u" in body:
        try:
            json.dumps(found, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise invalid("JSON Parse error: a surrogate (\\ud800 to \\udfff) alone") from error
    if not isinstance(found, dict):
        raise invalid("JSON Value is not an object")
    name = found.get("signature_name", SERVING_DEFAULT)
    if not isinstance(name, str):
        raise invalid("'signature_name' must be a string")
    both = [key for key in (_ROWS, _COLUMNS) if key in found]
    if len(both) != 1:
        raise invalid("Request must have either 'instances' or 'inputs' (and not both)")
    return PredictBody(name or SERVING_DEFAULT, found[both[0]], both == [_ROWS])


def inputs_of(body: PredictBody, signature: Signature) -> dict[str, np.ndarray]:
    """Converts a body to the inputs of the signature that it names, or refuses its values."""
    columns = _columns(body.value, signature) if body.in_rows else body.value
    # {"b64": ...} is a text, all other objects are names with their values.
    if not isinstance(columns, dict) or set(columns) == {BASE64}:
        if len(signature.inputs) != 1:
            raise invalid(f"'{_COLUMNS}' must be an object with {sorted(signature.inputs)}")
        columns = {next(iter(signature.inputs)): columns}
    check_names(signature, columns)
    found = {}
    for name, tensor in signature.inputs.items():
        try:
            if (tensor.dtype.is_integer or tensor.dtype.is_floating) and _holds_bool(columns[name]):
                raise invalid(f"input {name!r}: a boolean is no {tensor.dtype.name}")
            found[name] = tensor.batch(name, from_json(columns[name], tensor.dtype))
        except (ValueError, RecursionError) as error:
            raise invalid(f"input {name!r}: {error}"[:500]) from error
    return found


def answer_of(outputs: Mapping[str, np.ndarray], in_rows: bool) -> bytes:
    """Returns the body of an answer, in the form of the request."""
    listed = {name: _listed(name, batch) for name, batch in sorted(outputs.items())}
    single = next(iter(listed.values())) if len(listed) == 1 else None
    if not in_rows:
        return _encoded({"outputs": listed if single is None else single})
    sizes = {len(batch) if batch.ndim else None for batch in outputs.values()}
    if len(sizes) != 1 or None in sizes:  # a scalar has no rows
        raise invalid("the outputs have not as many rows each: ask with 'inputs', not 'instances'")
    if single is not None:
        return _encoded({"predictions": single})
    rows = zip(*listed.values(), strict=True)
    return _encoded({"predictions": [dict(zip(listed, row)) for row in rows]})


def _columns(rows: Any, signature: Signature) -> dict[str, list[Any]]:
    if not isinstance(rows, list):
        raise invalid(f"'{_ROWS}' must be a list of rows")
    if not rows:
        raise invalid(f"'{_ROWS}' must have a row")
    names = set(signature.inputs)
    if len(names) == 1:
        name = next(iter(names))
        named = [isinstance(row, dict) and set(row) == names for row in rows]
        if len(set(named)) > 1:
            raise invalid(f"'{_ROWS}' must be all bare or all objects with {sorted(names)}")
        if not named[0]:
            _check_bare(rows, names)
        return {name: [row[name] for row in rows] if named[0] else rows}
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or set(row) != names:
            raise invalid(f"'{_ROWS}', row {number}, must be an object with {sorted(names)}")
    return {name: [row[name] for row in rows] for name in names}


def _check_bare(rows: list[Any], names: set[str]) -> None:
    """Refuses rows that are objects with other names than that of the one input."""
    for number, row in enumerate(rows):
        if isinstance(row, dict) and set(row) != {BASE64}:
            raise invalid(
                f"'{_ROWS}', row {number}, must be bare or an object with {sorted(names)}. "
                f"Received: one with {sorted(row)}"[:500]
            )


def _holds_bool(value: Any) -> bool:
    """Returns whether lists hold a boolean, which NumPy takes for a number beside numbers."""
    if isinstance(value, list):
        return any(isinstance(one, bool | list) and _holds_bool(one) for one in value)
    return isinstance(value, bool)


def _listed(name: str, batch: np.ndarray) -> Any:
    """Converts a batch to JSON; an output whose name ends in "_bytes" is base64 throughout."""
    if batch.ndim == 0:
        return _listed(name, batch[None])[0]
    if not name.endswith(_BYTES) or batch.dtype.kind != "O":
        return to_json(batch)
    return [
        _listed(name, row)
        if isinstance(row, np.ndarray)
        else {"b64": base64.b64encode(row).decode("ascii")}
        for row in batch
    ]


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8")
