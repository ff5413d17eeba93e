"""Calls that show how each signature of an export is asked, over REST and over gRPC."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbert.serving.format.json_tensors import BASE64
from kbert.serving.format.recorded_requests import GOLDEN_FILE
from kbert.serving.format.version_folders import read_metadata


def example_calls(name: str, path: Path, url: str) -> list[str]:
    """Returns the lines of Markdown with the calls of a model.

    Args:
        name: the model's name on the server.
        path: its version folder, whose golden answers hold the requests.
        url: its address, without a verb.
    """
    lines: list[str] = []
    for signature, inputs in _examples(path):
        lines += ["", f"Signature `{signature}`, over REST and over gRPC:", ""]
        columns = {key: value for key, (value, _) in inputs.items()}
        body = {"signature_name": signature, "inputs": columns}
        quoted = json.dumps(body, ensure_ascii=False).replace("'", "'\\''")
        lines += ["```", f"curl -s {url}:predict -d '{quoted}'", "```", ""]
        lines += _grpc_call(name, signature, inputs)
    return lines


def call_in_process(name: str, path: Path) -> list[str]:
    """Returns the lines of Markdown with a call of a model in Python, without a server or kbert.

    Args:
        name: the model's name, below the folder that the lines are run in.
        path: its version folder, whose golden answers hold the request.
    """
    for signature, inputs in _examples(path):
        values = {key: f"tf.constant({_as_python(v)}, tf.{t})" for key, (v, t) in inputs.items()}
        is_coded = any("b64decode" in value for value in values.values())
        return [
            "```python",
            *(["import base64"] if is_coded else []),
            "import tensorflow as tf",
            "import tensorflow_text  # operations of the graph",
            "",
            f"model = tf.saved_model.load({json.dumps(f'{name}/{path.name}')})",
            f"signature = model.signatures[{json.dumps(signature)}]",
            "answer = signature(",
            *(f"    {key}={value}," for key, value in values.items()),
            ")",
            "print({k: v.numpy() for k, v in answer.items()})",
            "```",
        ]
    return []


def _examples(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each signature with the inputs of one short row, from the golden answers."""
    try:
        signatures = read_metadata(path)["signatures"]
        golden = json.loads((path / GOLDEN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # of an export without a bundle
    for one in golden:
        request = one["request"]
        dtypes = {t["name"]: t["dtype"] for t in signatures[request["signature_name"]]["inputs"]}
        # The second row has the shortest text.
        row = {name: values[1:2] or values[:1] for name, values in request["inputs"].items()}
        cut = row["lengths"][0] if "lengths" in row else None
        row = {k: [v[0][:cut]] if isinstance(v[0], list) else v for k, v in row.items()}
        yield request["signature_name"], {name: (row[name], dtypes[name]) for name in dtypes}


def _grpc_call(name: str, signature: str, inputs: dict[str, Any]) -> list[str]:
    """Returns a call with the packages grpcio and tensorflow-serving-api."""
    shown = {key: (_as_python(value), dtype) for key, (value, dtype) in inputs.items()}
    lines = [
        "```python",
        *(["import base64"] if any("b64decode" in value for value, _ in shown.values()) else []),
        "import grpc",
        "import tensorflow as tf",
        "from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc",
        "",
        'channel = grpc.insecure_channel("localhost:8500")',
        "service = prediction_service_pb2_grpc.PredictionServiceStub(channel)",
        "request = predict_pb2.PredictRequest()",
        f"request.model_spec.name = {json.dumps(name)}",
        f"request.model_spec.signature_name = {json.dumps(signature)}",
    ]
    for key, (value, dtype) in shown.items():
        lines.append(f"tensor = tf.make_tensor_proto({value}, tf.{dtype})")
        lines.append(f"request.inputs[{json.dumps(key)}].CopyFrom(tensor)")
    lines.append("answer = service.Predict(request, timeout=30.0)")
    return [*lines, "print({k: tf.make_ndarray(v) for k, v in answer.outputs.items()})", "```"]


def _as_python(values: list[Any]) -> str:
    """Returns a batch of JSON as a Python expression, in which bytes are base64."""
    if not values or not isinstance(values[0], dict):
        return repr(values)
    codes = (json.dumps(one[BASE64]) for one in values)
    return f"[{', '.join(f'base64.b64decode({code})' for code in codes)}]"
