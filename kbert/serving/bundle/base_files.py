"""Files beside the exports of a folder: configuration of a server, and instructions for its use.

`model.config`, `monitoring.config` and `README.md` are rewritten with each export. One that does
not begin with kbert's mark was written or changed by somebody else, and stays as it is.
"""

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbert.serving.bundle.model_card import CARD_FILE
from kbert.serving.bundle.recorded_requests import GOLDEN_FILE
from kbert.serving.format.metadata import read_metadata
from kbert.serving.format.version_folders import complete_versions, exports_in
from kbert.storage.atomic_directory import write_atomically

logger = logging.getLogger(__name__)
MODEL_CONFIG = "model.config"
MONITORING_CONFIG = "monitoring.config"
README = "README.md"
METRICS_PATH = "/monitoring/prometheus/metrics"
_MARK = "Written by kbert export, anew with each export. Remove this line to keep your changes."
_IMAGE = "tensorflow/serving:2.20.0"
_FLAGS = (
    "--model_config_file_poll_wait_seconds=30",
    "--enable_batching",
    "--enable_per_model_batching_parameters",
)


def write_base_files(base: str | os.PathLike[str]) -> None:
    """Writes the files for all models of a folder."""
    complete = {folder.name: complete_versions(folder) for folder in exports_in(base)}
    found = {name: paths[max(paths)] for name, paths in complete.items() if paths}
    _write(Path(base, MODEL_CONFIG), f"# {_MARK}", model_config(list(found)))
    _write(Path(base, MONITORING_CONFIG), f"# {_MARK}", _monitoring())
    _write(Path(base, README), f"<!-- {_MARK} -->", _readme(found))


def model_config(names: list[str]) -> str:
    """Returns the message ModelServerConfig, as text, for these models below /models."""
    lines = ["model_config_list {"]
    for name in names:
        lines += [
            "  config {",
            f'    name: "{name}"',
            f'    base_path: "/models/{name}"',
            '    model_platform: "tensorflow"',
            "  }",
        ]
    return "\n".join([*lines, "}"]) + "\n"


def _monitoring() -> str:
    return f'prometheus_config {{\n  enable: true\n  path: "{METRICS_PATH}"\n}}\n'


def _write(file: Path, mark: str, text: str) -> None:
    if file.is_file():
        present = file.read_text(encoding="utf-8", errors="replace")
        if not present.startswith(mark):
            logger.warning("%s is not kbert's own, and stays as it is.", file)
            return
        if present == f"{mark}\n{text}":
            return  # a server that polls the file need not read it again
    write_atomically(file, f"{mark}\n{text}")


def _readme(models: dict[str, Path]) -> str:
    flags = " \\\n  ".join(_FLAGS)
    cards = {name: f"{name}/{path.name}/{CARD_FILE.as_posix()}" for name, path in models.items()}
    lines = [
        "# Models for TensorFlow Serving",
        "",
        *(f"- `{name}`: [card]({card})" for name, card in cards.items()),
        "",
        "A server takes the highest version of each model, looks for new ones every second, and",
        f"reads `{MODEL_CONFIG}` again every 30 seconds. Run these lines in this folder.",
        "",
        "```",
        'docker run --rm -p 8500:8500 -p 8501:8501 -v "$PWD:/models:ro" \\',
        f"  {_IMAGE} \\",
        f"  --model_config_file=/models/{MODEL_CONFIG} \\",
        f"  --monitoring_config_file=/models/{MONITORING_CONFIG} \\",
        f"  {flags}",
        "```",
        "",
        f"Without Docker; the paths in `{MODEL_CONFIG}` must be absolute, and become those of this",
        "folder:",
        "",
        "```",
        f'sed "s#/models/#$PWD/#" {MODEL_CONFIG} > /tmp/{MODEL_CONFIG}',
        "tensorflow_model_server --port=8500 --rest_api_port=8501 \\",
        f"  --model_config_file=/tmp/{MODEL_CONFIG} \\",
        f'  --monitoring_config_file="$PWD/{MONITORING_CONFIG}" \\',
        f"  {flags}",
        "```",
        "",
        f"Metrics: `curl -s http://localhost:8501{METRICS_PATH}`. Neither port asks who is",
        "calling: keep both behind something that does.",
    ]
    for name, path in models.items():
        lines += ["", f"## {name}", "", "```", *_status_calls(name), "```"]
        for signature, inputs in _examples(path):
            lines += ["", f"Signature `{signature}`, over REST and over gRPC:", ""]
            lines += [*_rest_call(name, signature, inputs), ""]
            lines += _grpc_call(name, signature, inputs)
    return "\n".join(lines) + "\n"


def _status_calls(name: str) -> list[str]:
    return [f"curl -s http://localhost:8501/v1/models/{name}{end}" for end in ("", "/metadata")]


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
        row = {name: _row(values) for name, values in request["inputs"].items()}
        cut = row["lengths"][0] if "lengths" in row else None
        row = {k: [v[0][:cut]] if isinstance(v[0], list) else v for k, v in row.items()}
        yield request["signature_name"], {name: (row[name], dtypes[name]) for name in dtypes}


def _row(values: list[Any]) -> list[Any]:
    """Returns the second row, which has the shortest text, as a batch."""
    return values[1:2] or values[:1]


def _rest_call(name: str, signature: str, inputs: dict[str, Any]) -> list[str]:
    columns = {key: value for key, (value, _) in inputs.items()}
    body = json.dumps({"signature_name": signature, "inputs": columns}, ensure_ascii=False)
    quoted = body.replace("'", "'\\''")
    url = f"http://localhost:8501/v1/models/{name}:predict"
    return ["```", f"curl -s {url} -d '{quoted}'", "```"]


def _grpc_call(name: str, signature: str, inputs: dict[str, Any]) -> list[str]:
    """Returns a call with the packages grpcio and tensorflow-serving-api."""
    lines = [
        "```python",
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
    for key, (value, dtype) in inputs.items():
        lines.append(f"tensor = tf.make_tensor_proto({value!r}, tf.{dtype})")
        lines.append(f"request.inputs[{json.dumps(key)}].CopyFrom(tensor)")
    lines.append("answer = service.Predict(request, timeout=30.0)")
    return [*lines, "print({k: tf.make_ndarray(v) for k, v in answer.outputs.items()})", "```"]
