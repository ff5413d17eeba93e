"""The files of the page, their headers, and what the page is told of the models."""

import re
from types import SimpleNamespace

import pytest
import requests
import tensorflow as tf

from kbert.local_server.server import LocalServer, ServerOptions
from kbert.local_server.web_page import described, task_of
from kbert.serving.format.signatures import Signature, SignatureTensor
from kbert.tasks.registry import all_tasks
from tests.local_server.conftest import FREE

SCRIPTS = ("answers", "captions", "examples", "images", "page")
PATHS = ("/", "/web/page.css", *(f"/web/{name}.js" for name in SCRIPTS))


@pytest.mark.parametrize("path", PATHS)
def test_files_and_headers(server: LocalServer, path: str):
    found = requests.get(server.rest_url + path, timeout=9)
    assert found.status_code == 200 and found.content
    policy = found.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert found.headers["x-content-type-options"] == "nosniff"
    # Nothing comes from elsewhere, and no text is ever read as HTML.
    assert not re.search(r"(src|href)=\"(https?:)?//", found.text)
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in found.text


def test_what_the_page_is_told(server: LocalServer):
    models = requests.get(f"{server.rest_url}/web/models", timeout=9).json()["models"]
    assert [(one["name"], one["version"]) for one in models] == [("chooser", 1), ("meter", 1)]
    default = models[1]["signatures"]["serving_default"]
    assert default["inputs"] == [{"name": "text", "dtype": "string", "shape": [None]}]
    assert models[0]["task"] == "choice" and models[1]["task"] == "classification"


def test_the_page_is_guarded_as_the_rest(server: LocalServer):
    for path in ("/", "/web/models"):
        url = server.rest_url + path
        for headers, status in (
            ({"Host": "evil.example"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),  # a link
        ):
            assert requests.get(url, headers=headers, timeout=9).status_code == status


def test_no_page_unless_it_is_wanted(base):
    with LocalServer(base, ServerOptions(**{**FREE, "grpc_port": -1})) as server:
        for path in PATHS:
            assert requests.get(server.rest_url + path, timeout=9).status_code == 404


def test_tasks():
    assert task_of({"class": "EntityRecognizer"}, []) == "entities"
    assert task_of({}, ["translation", "score"]) == "translation"
    assert task_of({}, ["label", "scores"]) == "classification"
    assert task_of({}, ["weight"]) == "other"
    assert task_of({}, ["entity", "score"]) == "entities"


def test_pages_of_models_that_others_exported():
    """The registry knows the outputs of each task, so a new one needs no line in the page."""
    for task in all_tasks():
        assert task_of({}, list(task.outputs)) == task.page, task.name


def test_a_model_without_signatures_is_not_listed():
    version = SimpleNamespace(model=SimpleNamespace(signatures={}), about={}, number=1)
    assert described("other", version) == []


def test_an_export_of_several_tasks_is_listed_by_task():
    one = Signature({"text": SignatureTensor("t:0", tf.string, (None,))}, {"label": None})
    model = SimpleNamespace(signatures={"serving_default": one, "topic": one, "mood": one})
    tasks = {"topic": {"class": "Classifier", "labels": ["a"]}, "mood": {"class": "Regressor"}}
    version = SimpleNamespace(model=model, about={"tasks": tasks}, number=3)
    found = described("both", version)
    assert [(x["key"], x["signature"], x["task"], x["labels"]) for x in found] == [
        ("both / topic", "topic", "classification", ["a"]),
        ("both / mood", "mood", "regression", None),
    ]
