"""Requests of an export with the answers of its model in Python: golden_answers.json.

With it a recipient of an export can check that it still gives the right answers: with `kbert
check`, or by posting a request to a server and comparing. Requests and answers are in the columnar
format of TF Serving's REST API.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kbert.serving.format.json_tensors import from_json, to_json
from kbert.serving.format.signatures import Signature

GOLDEN_FILE = Path("assets.extra", "golden_answers.json")
_SHOWN = 80
# How far a number may be off, due to other processors and other orders of summation.
TOLERANCES = {"float32": 1e-4, "bfloat16": 3e-2, "float16": 1e-2}


@dataclass(frozen=True)
class GoldenAnswer:
    """A request and its answer.

    Args:
        signature: The name of the signature.
        inputs: Name of each input -> its batch.
        outputs: Name of each output -> its batch.
        tolerance: Absolute and relative tolerance of floats.
    """

    signature: str
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]
    tolerance: float


def write_golden(export_dir: str | os.PathLike[str], answers: Sequence[GoldenAnswer]) -> None:
    """Writes the answers of a version folder.

    Args:
        export_dir: The folder.
        answers: The answers.
    """
    content = [
        {
            "request": {"signature_name": one.signature, "inputs": _columns(one.inputs)},
            "response": {"outputs": _columns(one.outputs)},
            "tolerance": one.tolerance,
        }
        for one in answers
    ]
    file = Path(export_dir) / GOLDEN_FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_golden(
    export_dir: str | os.PathLike[str], signatures: Mapping[str, Signature]
) -> list[GoldenAnswer] | None:
    """Reads the answers of a version folder.

    Args:
        export_dir: The folder.
        signatures: Name -> signature, for the dtypes.

    Returns:
        The answers, or None if there is no file.

    Raises:
        ValueError: The file is damaged, or has other signatures, inputs or outputs.
    """
    file = Path(export_dir) / GOLDEN_FILE
    if not file.is_file():
        return None
    try:
        return [_answer(one, signatures) for one in json.loads(file.read_text(encoding="utf-8"))]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"`{file}` must hold requests to the signatures and their answers. Received: {error!r}"
        ) from error


def differences(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], tolerance: float
) -> list[str]:
    """Describes the differences between two answers, one sentence an output.

    Args:
        found: Name of each output -> its batch.
        expected: Name of each output -> its expected batch.
        tolerance: Absolute and relative tolerance of floats. Texts, integers and bools must be
            equal.
    """
    told = []
    if set(found) != set(expected):
        told.append(f"the outputs are {sorted(found)} instead of {sorted(expected)}")
    for name in sorted(set(found) & set(expected)):
        one, other = np.asarray(found[name]), np.asarray(expected[name])
        if one.shape != other.shape:
            told.append(f"{name!r} has the shape {one.shape} instead of {other.shape}")
        elif one.dtype.kind in "OSbiu" or other.dtype.kind in "OSbiu":
            wrong = np.argwhere(one != other)
            if len(wrong):
                at = tuple(wrong[0].tolist())
                told.append(f"{name!r} is {_shown(one[at])} instead of {_shown(other[at])} at {at}")
        else:
            one, other = one.astype(np.float32), other.astype(np.float32)
            if not np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True):
                off = float(np.max(np.abs(np.nan_to_num(one) - np.nan_to_num(other))))
                told.append(f"{name!r} is off by up to {off:.3g}, more than {tolerance:g}")
    return told


def _shown(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)[:_SHOWN]


def _columns(batches: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {name: to_json(np.asarray(batch)) for name, batch in sorted(batches.items())}


def _answer(content: Any, signatures: Mapping[str, Signature]) -> GoldenAnswer:
    request, response = content["request"], content["response"]
    name = request["signature_name"]
    called = signatures[name]
    inputs = {k: from_json(v, called.inputs[k].dtype) for k, v in request["inputs"].items()}
    outputs = {k: from_json(v, called.outputs[k].dtype) for k, v in response["outputs"].items()}
    return GoldenAnswer(name, inputs, outputs, float(content["tolerance"]))
