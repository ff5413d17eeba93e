"""What export/ brings for other programs: compose.yaml, kserve.yaml, vertex.sh, the Dockerfile.

None of these programs is asked here. `make lint-export` holds the files to the public schemas.
"""

import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
import typer
import yaml
from prometheus_client.parser import text_string_to_metric_families

import kbert
from kbert.cli.main import app
from kbert.local_server.limits import Metrics
from kbert.local_server.server import LocalServer, ServerOptions
from kbert.serving.export.base_files import METRICS_PATH, write_base_files
from kbert.serving.format.version_folders import MONITORING_CONFIG

# Metrics of TensorFlow Serving that `kbert serve` does not have: the first from its source file
# servables/tensorflow/util.cc, the second from TensorFlow's kernels/batching_util, of batches
# that are made within the graph.
ONLY_TENSORFLOW_SERVING = {"runtime_latency", "batching:batch_delay_us_v2"}


@pytest.fixture(scope="module")
def kit(in_checkout: Callable[[str], Path]) -> Path:
    return in_checkout("export/docker").parent


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that the README of each export gives, from the image on."""
    base = tmp_path_factory.mktemp("exports")
    write_base_files(base)
    found = re.search(r"^docker run .*?^```", (base / "README.md").read_text(), re.M | re.S)
    words = shlex.split(found[0].removesuffix("```").replace("\\\n", " "))
    return words[next(i for i, word in enumerate(words) if word.startswith("tensorflow/")) :]


def documents(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))


def batching(flags: list[str]) -> set[str]:
    return {flag for flag in flags if "batching" in flag}


def test_compose_starts_the_server_as_an_exports_readme_does(kit, command):
    (compose,) = documents(kit / "docker" / "compose.yaml")
    server = compose["services"]["server"]
    assert [server["image"], *server["command"]] == command
    assert server["volumes"][0].endswith(":/models:ro")


def test_compose_mounts_files_that_are_there_and_listens_on_this_machine_alone(kit):
    (compose,) = documents(kit / "docker" / "compose.yaml")
    mounts = [one for service in compose["services"].values() for one in service["volumes"]]
    files = {mount.split(":")[0] for mount in mounts if mount.startswith("./")}
    here = {f"./{file.name}" for file in (kit / "docker").iterdir()}
    assert files == here - {"./compose.yaml", "./Dockerfile"}
    named = {mount.split(":")[0] for mount in mounts if mount[0].isalpha()}
    assert named == set(compose["volumes"])
    ports = [port for service in compose["services"].values() for port in service["ports"]]
    assert ports and all(port.startswith("127.0.0.1:") for port in ports)
    images = [service["image"] for service in compose["services"].values()]
    assert all(re.fullmatch(r"[a-z]+/[a-z]+:v?\d+\.\d+\.\d+", image) for image in images)


def test_prometheus_asks_the_server_and_grafana_asks_prometheus(kit):
    folder = kit / "docker"
    (compose,), (prometheus,) = (documents(folder / f"{n}.yaml") for n in ("compose", "prometheus"))
    (job,) = prometheus["scrape_configs"]
    assert job["metrics_path"] == METRICS_PATH
    host, port = job["static_configs"][0]["targets"][0].split(":")
    assert f"127.0.0.1:{port}:{port}" in compose["services"][host]["ports"]
    (source,) = documents(folder / "grafana_datasource.yaml")[0]["datasources"]
    host, port = source["url"].removeprefix("http://").split(":")
    assert f"127.0.0.1:{port}:{port}" in compose["services"][host]["ports"]
    assert source["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]
    (provider,) = documents(folder / "grafana_dashboards.yaml")[0]["providers"]
    mounts = compose["services"]["grafana"]["volumes"]
    assert f"./dashboard.json:{provider['options']['path']}/serving.json:ro" in mounts
    dashboard = json.loads((folder / "dashboard.json").read_text(encoding="utf-8"))
    sources = re.findall(r'"uid": "(\w+)"', json.dumps(dashboard))
    assert set(sources) == {source["uid"]}


def test_the_dashboard_asks_for_metrics_that_are_there_and_shows_all(kit):
    metrics = Metrics()
    metrics.batches_of("m")(1, 0.0)
    with metrics.request("REST") as request:
        request.model = "m"
    page = list(text_string_to_metric_families(metrics.page().decode()))
    histograms = {family.name for family in page if family.type == "histogram"}
    known = {sample.name for family in page for sample in family.samples}
    known |= {f":tensorflow:serving:{name}_bucket" for name in ONLY_TENSORFLOW_SERVING}
    dashboard = json.loads((kit / "docker" / "dashboard.json").read_text(encoding="utf-8"))
    panels = dashboard["panels"]
    asked = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    asked_names = set(re.findall(r"(?::tensorflow|kbert_)[\w:]*", asked))
    assert asked_names <= known
    shown = {re.sub("_(bucket|sum|count)$", "", name) for name in asked_names}
    assert histograms <= shown
    assert "kbert_requests_inside" in asked_names
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len({panel["id"] for panel in panels}) == len(panels)


def test_kserve_starts_the_same_server(kit, command):
    config, runtime, service = documents(kit / "kserve.yaml")
    (container,) = runtime["spec"]["containers"]
    assert container["name"] == "kserve-container"  # KServe knows the server's container by it
    assert container["image"] == command[0]
    assert batching(container["args"]) == batching(command)
    flags = dict(arg.split("=", 1) for arg in container["args"] if "=" in arg)
    assert container["readinessProbe"]["tcpSocket"]["port"] == int(flags["--rest_api_port"])
    annotations = runtime["spec"]["annotations"]
    assert annotations["prometheus.kserve.io/port"] == flags["--rest_api_port"]
    assert annotations["prometheus.kserve.io/path"] == METRICS_PATH
    (mount,), (volume,) = container["volumeMounts"], runtime["spec"]["volumes"]
    assert (volume["name"], volume["configMap"]["name"]) == (
        mount["name"],
        config["metadata"]["name"],
    )
    (name,) = config["data"]
    assert flags["--monitoring_config_file"] == f"{mount['mountPath']}/{name}"
    model = service["spec"]["predictor"]["model"]
    assert model["runtime"] == runtime["metadata"]["name"]
    formats = runtime["spec"]["supportedModelFormats"]
    assert model["modelFormat"] in [{k: one[k] for k in ("name", "version")} for one in formats]
    assert model["protocolVersion"] in runtime["spec"]["protocolVersions"]


def test_kserve_has_the_monitoring_that_an_export_writes(kit, tmp_path: Path):
    write_base_files(tmp_path)
    written = (tmp_path / MONITORING_CONFIG).read_text().splitlines()
    config = documents(kit / "kserve.yaml")[0]
    assert config["data"][MONITORING_CONFIG].splitlines() == written[1:]  # without kbert's mark


@pytest.fixture
def cloud(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs vertex.sh with programs that note how they were called and answer as Google's do."""
    programs = tmp_path / "programs"
    programs.mkdir()
    answer = (
        'case "$*" in *"models upload"*) echo projects/7/locations/r/models/31;; '
        '*"endpoints create"*) echo projects/7/locations/r/endpoints/52;; esac'
    )
    for name in ("gcloud", "docker"):
        noted = f'printf "%s\\n" "{name}" "$@" "" >> "$NOTES"'
        (programs / name).write_text(f"#!/bin/sh\n{noted}\n{answer}\n")
        (programs / name).chmod(0o755)

    def run(script: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        path = f"{programs}:{os.environ['PATH']}"
        environment = {"PATH": path, "NOTES": str(tmp_path / "notes"), **variables}
        return subprocess.run(
            [script, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    return run


PLACE = {"PROJECT": "p", "REGION": "r", "BUCKET": "b", "REPOSITORY": "images"}


def test_vertex_uploads_deploys_and_asks(kit, cloud, command, tmp_path: Path):
    (tmp_path / "models" / "topics" / "1").mkdir(parents=True)
    (tmp_path / "ask.json").write_text("{}")
    done = cloud(kit / "vertex.sh", "models/topics", **PLACE, REQUEST="ask.json")
    assert (done.returncode, done.stderr) == (0, "")
    calls = [one.split("\n") for one in (tmp_path / "notes").read_text()[:-2].split("\n\n")]
    image = f"r-docker.pkg.dev/p/images/{command[0]}"
    assert ["docker", "push", image] in calls
    copied = ["gcloud", "storage", "rsync", "--recursive", "models/topics", "gs://b/exports/topics"]
    assert copied in calls
    (upload,) = [call for call in calls if call[2:4] == ["models", "upload"]]
    given = dict(word.split("=", 1) for word in upload if "=" in word)
    assert given["--artifact-uri"] == "gs://b/exports/topics"
    assert given["--container-image-uri"] == image
    flags = given["--container-args"].split(",")
    assert batching(flags) == batching(command)
    assert "--model_name=topics" in flags
    assert "--model_base_path=$(AIP_STORAGE_URI)" in flags
    assert f"--rest_api_port={given['--container-ports']}" in flags
    assert given["--container-predict-route"] == "/v1/models/topics:predict"
    assert given["--container-health-route"] == "/v1/models/topics"
    (deploy,) = [call for call in calls if call[3:4] == ["deploy-model"]]
    assert deploy[4] == "52" and "--model=31" in deploy
    (predict,) = [call for call in calls if call[3:4] == ["predict"]]
    assert predict[4] == "52" and "--json-request=ask.json" in predict
    assert "gcloud ai endpoints delete 52 --project=p --region=r" in done.stdout


def test_vertex_asks_for_what_is_missing_before_it_does_anything(kit, cloud, tmp_path: Path):
    assert "as exports/sentiment" in cloud(kit / "vertex.sh", **PLACE).stderr
    assert "BUCKET" in cloud(kit / "vertex.sh", "m", **{**PLACE, "BUCKET": ""}).stderr
    missing = cloud(kit / "vertex.sh", "m", **PLACE)
    assert (missing.returncode, missing.stderr) == (2, "vertex.sh: m is no folder\n")
    assert not (tmp_path / "notes").exists()


@pytest.fixture(scope="module")
def image(kit: Path) -> dict[str, str]:
    """The last instruction of each kind in the Dockerfile."""
    text = (kit / "docker" / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] != "#"]
    return dict(lines)


def test_the_image_is_pinned_and_serves_as_no_root(image):
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+", image["FROM"])
    assert int(image["USER"]) > 0 and f"useradd --create-home --uid {image['USER']}" in image["RUN"]
    assert "apt" not in image["RUN"]
    program, verb, *arguments = json.loads(image["ENTRYPOINT"])
    assert program == "kbert"
    known = typer.main.get_command(app).commands[verb].make_context(verb, arguments)
    ports = f"{known.params['grpc_port']} {known.params['rest_port']}"
    assert (str(known.params["base"]), image["EXPOSE"]) == ("/models", ports)


def test_the_image_has_the_wheel_that_is_built(image, kit: Path):
    settings = ConfigParser()
    settings.read(kit.parent / "setup.cfg")
    wheel = f"{settings['metadata']['name'].replace('-', '_')}-{kbert.__version__}-py3-none-any.whl"
    pattern = image["COPY"].split()[0]
    assert fnmatch.fnmatch(wheel, pattern) and f"/tmp/{pattern}" in image["RUN"]


def test_the_images_health_is_the_servers(image, tmp_path: Path):
    model = tf.Module()
    model.run = tf.function(lambda x: {"y": x}, [tf.TensorSpec([None], name="x")])
    tf.saved_model.save(model, str(tmp_path / "m" / "1"), {"serving_default": model.run})
    check = json.loads(image["HEALTHCHECK"].split(" CMD ")[1])
    with LocalServer(tmp_path, ServerOptions(rest_port=0, grpc_port=-1)) as server:
        port = server.rest_url.rsplit(":", 1)[1]
        program = check[2].replace(":8501", f":{port}")
        assert subprocess.run([sys.executable, *check[1:2], program]).returncode == 0
    ended = subprocess.run([sys.executable, *check[1:2], program], capture_output=True)
    assert ended.returncode == 1
