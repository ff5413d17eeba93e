"""A server asked from the shell."""

import importlib.util
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.serving.topics_server import MODEL, Asked, topics_server


@pytest.fixture(scope="module")
def script(in_checkout: Callable[[str], Path]) -> ModuleType:
    path = in_checkout("export/query_server.py")
    spec = importlib.util.spec_from_file_location("query_server", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def served() -> Iterator[Asked]:
    with topics_server() as asked:
        yield asked


@pytest.mark.parametrize("protocol", ["rest", "grpc"])
def test_texts_of_the_command_line(script, served, protocol, capsys: pytest.CaptureFixture[str]):
    url = served.url[protocol]
    script.main([url, MODEL, "a", "very long", "--version", "3", "--rows", "1"])
    short, long = map(json.loads, capsys.readouterr().out.splitlines())
    assert short == {
        "label": "short",
        "score": 0.875,
        "scores": {"short": 0.875, "long": 0.125},
        "truncated": None,
    }
    assert long["label"] == "long"


def test_lines_of_standard_input(script, served, monkeypatch, capsys: pytest.CaptureFixture[str]):
    lines = SimpleNamespace(buffer=io.BytesIO(b"a\r\n\xff very long\n"))
    monkeypatch.setattr(script.sys, "stdin", lines)
    script.main([served.url["rest"], MODEL])
    found = [json.loads(line)["label"] for line in capsys.readouterr().out.splitlines()]
    assert found == ["short", "long"]


def test_errors_are_told_in_a_line(script, served):
    with pytest.raises(SystemExit, match="query_server: .*NOT_FOUND: Servable not found"):
        script.main([served.url["rest"], "other", "a"])
    with pytest.raises(SystemExit, match="query_server: `url` must begin with http://"):
        script.main(["localhost", MODEL, "a"])


def test_parts_of_a_text(script):
    assert script.columns_of([b"a\tb", b"c\td"], 2) == [[b"a", b"c"], [b"b", b"d"]]
    assert script.columns_of([b"a\tb"], 1) == [[b"a\tb"]]
    with pytest.raises(ValueError, match="text 2 must have 2 part"):
        script.columns_of([b"a\tb", b"c"], 2)
