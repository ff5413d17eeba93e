"""Predict requests and answers of the REST interface: JSON -> arrays -> JSON.

Source: tensorflow/serving, `g3doc/api_rest.md`, and `util/json_tensor.cc`.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.local_server.engine.refusals import Refusal
from kbert.serving.format.json_tensors import from_json, to_json
from kbert.serving.format.signatures import SERVING_DEFAULT, Signature

_ROWS, _COLUMNS = "instances", "inputs"
_BYTES = "_bytes"


@dataclass(frozen=True)
class PredictBody:
    """A body that was read.

    Args:
        signature: The signature's name.
        value: What stands under "instances" or "inputs".
        in_rows: Whether it was "instances"; the answer has the same form.
    """

    signature: str
    value: Any
    in_rows: bool


def parsed(body: bytes) -> PredictBody:
    """The parts of a body.

    Args:
        body: The bytes.

    Raises:
        Refusal: It is no JSON, or not of this form.
    """
    try:
        found = json.loads(body)
    except RecursionError as error:
        raise Refusal("INVALID_ARGUMENT", "JSON Parse error: nested too deeply") from error
    except ValueError as error:
        raise Refusal("INVALID_ARGUMENT", f"JSON Parse error: {error}") from error
    if not isinstance(found, dict):
        raise Refusal("INVALID_ARGUMENT", "JSON Value is not an object")
    name = found.get("signature_name", SERVING_DEFAULT)
    if not isinstance(name, str):
        raise Refusal("INVALID_ARGUMENT", "'signature_name' must be a string")
    both = [key for key in (_ROWS, _COLUMNS) if key in found]
    if len(both) != 1:
        words = "Request must have either 'instances' or 'inputs' (and not both)"
        raise Refusal("INVALID_ARGUMENT", words)
    return PredictBody(name or SERVING_DEFAULT, found[both[0]], both == [_ROWS])


def inputs_of(body: PredictBody, signature: Signature) -> dict[str, np.ndarray]:
    """The inputs of a signature.

    Args:
        body: The request.
        signature: Of its name.

    Raises:
        Refusal: The values are not of its types and shapes.
    """
    columns = _columns(body.value, signature) if body.in_rows else body.value
    # {"b64": ...} is a text, all other objects are names with their values.
    if not isinstance(columns, dict) or set(columns) == {"b64"}:
        if len(signature.inputs) != 1:
            words = f"'{_COLUMNS}' must be an object with {sorted(signature.inputs)}"
            raise Refusal("INVALID_ARGUMENT", words)
        columns = {next(iter(signature.inputs)): columns}
    if set(columns) != set(signature.inputs):
        words = f"inputs must be {sorted(signature.inputs)}, and are {sorted(columns)}"
        raise Refusal("INVALID_ARGUMENT", words[:500])
    found = {}
    for name, tensor in signature.inputs.items():
        try:
            found[name] = tensor.batch(name, from_json(columns[name], tensor.dtype))
        except (ValueError, RecursionError) as error:
            words = f"input {name!r}: {error}"
            raise Refusal("INVALID_ARGUMENT", words[:500]) from error
    return found


def answer_of(outputs: Mapping[str, np.ndarray], in_rows: bool) -> bytes:
    """The body of an answer.

    Args:
        outputs: Name -> batch.
        in_rows: Whether the request was in rows.

    Raises:
        Refusal: The outputs have no rows.
    """
    listed = {name: _listed(name, batch) for name, batch in sorted(outputs.items())}
    single = next(iter(listed.values())) if len(listed) == 1 else None
    if not in_rows:
        return _encoded({"outputs": listed if single is None else single})
    if len({len(batch) if batch.ndim else None for batch in outputs.values()}) != 1:
        words = "the outputs have not as many rows each: ask with 'inputs', not 'instances'"
        raise Refusal("INVALID_ARGUMENT", words)
    if single is not None:
        return _encoded({"predictions": single})
    rows = zip(*listed.values(), strict=True)
    return _encoded({"predictions": [dict(zip(listed, row)) for row in rows]})


def _columns(rows: Any, signature: Signature) -> dict[str, list[Any]]:
    """Rows as columns."""
    if not isinstance(rows, list):
        raise Refusal("INVALID_ARGUMENT", f"'{_ROWS}' must be a list of rows")
    names = set(signature.inputs)
    if len(names) == 1:
        name = next(iter(names))
        bare = [row[name] if isinstance(row, dict) and set(row) == names else row for row in rows]
        return {name: bare}
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or set(row) != names:
            words = f"'{_ROWS}', row {number}, must be an object with {sorted(names)}"
            raise Refusal("INVALID_ARGUMENT", words)
    return {name: [row[name] for row in rows] for name in names}


def _listed(name: str, batch: np.ndarray) -> Any:
    """A batch as JSON; of an output that is said to hold bytes, all in base64."""
    if batch.ndim == 0:
        return _listed(name, batch[None])[0]
    if not name.endswith(_BYTES) or batch.dtype.kind != "O":
        return to_json(batch)
    return [
        _listed(name, row) if isinstance(row, np.ndarray) else {"b64": _base64(row)}
        for row in batch
    ]


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8")
