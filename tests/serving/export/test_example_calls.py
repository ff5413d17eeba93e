"""The calls that an export shows, for texts and for images."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.serving.export.example_calls import call_in_process, example_calls
from kbert.serving.format.json_tensors import from_json
from kbert.serving.format.recorded_requests import GoldenAnswer, write_golden
from kbert.serving.format.version_folders import write_metadata

PNG = b"\x89PNG\r\n\x1a\n'\x00\xff"


def calls_of(folder: Path, name: str, rows: list[bytes]) -> tuple[dict[str, Any], str]:
    """The body of the REST call, and the code for gRPC."""
    inputs = [{"name": name, "dtype": "string", "shape": [None]}]
    write_metadata(folder, {"signatures": {"serving_default": {"inputs": inputs}}})
    batch = np.array(rows, object)
    write_golden(folder, [GoldenAnswer("serving_default", {name: batch}, {}, 1e-4)])
    lines = example_calls("teller", folder, "http://localhost:8501/v1/models/teller")
    command = shlex.split(next(line for line in lines if line.startswith("curl")))
    assert command[2] == "http://localhost:8501/v1/models/teller:predict"
    body = json.loads(command[-1])
    assert body["signature_name"] == "serving_default"
    return body["inputs"], "\n".join(lines[lines.index("```python") + 1 : -1])


def test_texts(tmp_path: Path):
    """The second row is the short one."""
    inputs, code = calls_of(tmp_path, "text", [b"a long one", b"it's", b"third"])
    assert inputs == {"text": ["it's"]}
    assert '''tf.make_tensor_proto(["it's"], tf.string)''' in code and "base64" not in code
    compile(code, "example", "exec")


def test_images_are_base64(tmp_path: Path):
    inputs, code = calls_of(tmp_path, "image", [PNG, PNG])
    assert set(inputs["image"][0]) == {"b64"}
    assert from_json(inputs["image"], tf.string).tolist() == [PNG]
    (made,) = [line for line in code.splitlines() if "make_tensor_proto" in line]
    assert code.startswith("import base64\nimport grpc\n")
    found: dict[str, Any] = {}
    exec(f"import base64\nimport tensorflow as tf\n{made}", found)
    assert tf.make_ndarray(found["tensor"]).tolist() == [PNG]


def test_an_export_is_asked_in_python(exported_path: Path, monkeypatch, capsys):
    lines = call_in_process(exported_path.parent.name, exported_path)
    assert (lines[0], lines[-1]) == ("```python", "```") and "kbert" not in "".join(lines)
    monkeypatch.chdir(exported_path.parents[1])
    exec("\n".join(lines[1:-1]), {})
    assert "'label': array([b" in capsys.readouterr().out


def test_images_are_given_in_process_as_base64(tmp_path: Path):
    calls_of(tmp_path, "image", [PNG, PNG])
    lines = call_in_process("teller", tmp_path)
    (made,) = [line for line in lines if line.startswith("    image=")]
    found: dict[str, Any] = {}
    exec(f"import base64\nimport tensorflow as tf\nfound = dict({made})", found)
    assert found["found"]["image"].numpy().tolist() == [PNG] and lines[1] == "import base64"


def test_an_export_without_a_bundle_has_none(tmp_path: Path):
    assert example_calls("teller", tmp_path, "http://localhost") == []
    assert call_in_process("teller", tmp_path) == []
