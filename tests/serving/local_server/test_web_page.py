"""The files of the page, their headers, and what the page is told of the models."""

import re

import pytest
import requests

from kbert.serving.local_server.server import LocalServer, ServerOptions
from kbert.serving.local_server.web_page import task_of
from tests.serving.local_server.conftest import FREE

PATHS = ("/", "/web/page.css", "/web/page.js", "/web/answers.js", "/web/examples.js")


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


def test_no_page_unless_it_is_wanted(base):
    with LocalServer(base, ServerOptions(**{**FREE, "grpc_port": -1})) as server:
        for path in PATHS:
            assert requests.get(server.rest_url + path, timeout=9).status_code == 404


def test_tasks():
    def named(*outputs):
        return {"serving_default": {"outputs": list(outputs)}}

    assert task_of({"class": "EntityRecognizer"}, {}) == "entities"
    assert task_of({}, named("translation", "score")) == "translation"
    assert task_of({}, named("label", "scores")) == "classification"
    assert task_of({}, named("weight")) == "other"
    assert task_of({}, {}) == "other"
