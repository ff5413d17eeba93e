"""What lies beside all exports: read by the official messages, and run as a shell would."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from kbert.serving.export.base_files import write_base_files
from kbert.serving.export.export import export
from tests.serving.tiny_models import Chooser, Meter


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    for model, name in ((Meter(), "meter"), (Meter(), "a.b-c"), (Chooser(), "c")):
        export(model, folder, name, max_batch_size=2)
    (folder / "empty").mkdir()
    (folder / "half" / "1").mkdir(parents=True)
    return folder


def test_the_server_reads_its_configuration(base: Path):
    pytest.importorskip("tensorflow_serving", reason='pip install ".[serving]"')
    from tensorflow_serving.config import model_server_config_pb2

    text = (base / "model.config").read_text()
    config = text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
    found = [(c.name, c.base_path, c.model_platform) for c in config.model_config_list.config]
    names = ["a.b-c", "c", "meter"]
    assert found == [(name, f"/models/{name}", "tensorflow") for name in names]


def test_monitoring(base: Path):
    lines = (base / "monitoring.config").read_text().splitlines()[1:]
    # As TF Serving's guide has it.
    assert " ".join(" ".join(lines).split()) == (
        'prometheus_config { enable: true path: "/monitoring/prometheus/metrics" }'
    )


def calls(readme: str, begin: str) -> list[list[str]]:
    joined = readme.replace("\\\n", " ")
    return [shlex.split(line) for line in joined.splitlines() if line.startswith(begin)]


def test_the_readme_has_a_call_for_each_signature(base: Path):
    readme = (base / "README.md").read_text(encoding="utf-8")
    bodies = [call[call.index("-d") + 1] for call in calls(readme, "curl") if "-d" in call]
    requests = [json.loads(body) for body in bodies]
    assert [one["signature_name"] for one in requests] == [
        *("serving_default", "tokens"),
        *("choose", "serving_default"),
        *("serving_default", "tokens"),
    ]
    tokens = requests[1]["inputs"]
    assert set(tokens) == {"token_ids", "segment_ids", "lengths"}
    assert len(tokens["token_ids"][0]) == tokens["lengths"][0]
    for name in ("a.b-c", "c", "meter"):
        assert f"http://localhost:8501/v1/models/{name}:predict" in readme
        assert f"]({name}/1/assets.extra/README.md)" in readme
        assert (base / name / "1" / "assets.extra" / "README.md").is_file()
    assert "half" not in readme and "empty" not in readme


def test_the_server_is_started_with_flags_that_it_has(base: Path):
    readme = (base / "README.md").read_text(encoding="utf-8")
    (docker,) = calls(readme, "docker")
    (binary,) = calls(readme, "tensorflow_model_server")
    assert docker[-4:] == [
        "tensorflow/serving:2.20.0",
        "--model_config_file=/models/model.config",
        "--monitoring_config_file=/models/monitoring.config",
        "--model_config_file_poll_wait_seconds=30",
    ]
    assert binary[3:] == [
        "--model_config_file=/tmp/model.config",
        "--monitoring_config_file=$PWD/monitoring.config",
        docker[-1],
    ]


def test_the_code_for_grpc_asks_what_it_says(base: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("tensorflow_serving", reason='pip install ".[serving]"')
    from tensorflow_serving.apis import prediction_service_pb2_grpc

    asked: list[Any] = []

    class Service:
        def __init__(self, channel: Any) -> None:
            pass

        def Predict(self, request: Any, timeout: float) -> Any:
            asked.append(request)
            return type("Answer", (), {"outputs": {}})

    monkeypatch.setattr(prediction_service_pb2_grpc, "PredictionServiceStub", Service)
    readme = (base / "README.md").read_text(encoding="utf-8")
    for code in re.findall(r"```python\n(.*?)```", readme, re.DOTALL):
        if "import grpc" in code:
            exec(code, {"__name__": "example"})
    names = [(r.model_spec.name, r.model_spec.signature_name) for r in asked]
    assert names[-2:] == [("meter", "serving_default"), ("meter", "tokens")]
    assert len(names) == 6
    assert set(asked[-1].inputs) == {"token_ids", "segment_ids", "lengths"}


def test_files_of_other_hands_stay(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "model.config").write_text("model_config_list { }\n")
    write_base_files(tmp_path)
    assert (tmp_path / "model.config").read_text() == "model_config_list { }\n"
    assert "model.config is not kbert's own, and stays as it is" in caplog.text
    readme = tmp_path / "README.md"
    before = readme.stat().st_mtime_ns
    write_base_files(tmp_path)
    assert readme.stat().st_mtime_ns == before  # nothing new
    readme.write_text(readme.read_text() + "something of yesterday")
    write_base_files(tmp_path)
    assert "yesterday" not in readme.read_text()
