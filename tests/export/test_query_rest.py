"""The REST client against a server that speaks TF Serving's format."""

import base64
import io
import json
import runpy
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

REQUESTS: list[tuple[str, Any]] = []


class Server(BaseHTTPRequestHandler):
    """Answers with the number of instances; a model named "absent" is not there."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        REQUESTS.append((self.path, body))
        missing = "/absent:" in self.path
        answer = {"error": "Servable not found"} if missing else {"predictions": ["ja", "ä"]}
        self.send_response(404 if missing else 200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode("utf-8"))

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def script(in_checkout: Callable[[str], Path]) -> dict[str, Any]:
    return runpy.run_path(str(in_checkout("export/query_rest.py")))


def test_texts_become_instances(script, url, capsys):
    script["main"](["m", "a film", "ä", "--url", f"{url}/"])
    assert REQUESTS[-1] == (
        "/v1/models/m:predict",
        {"instances": [{"text": "a film"}, {"text": "ä"}]},
    )
    assert json.loads(capsys.readouterr().out) == {"predictions": ["ja", "ä"]}


def test_version_signature_and_pairs(script, url):
    arguments = ["m", "one\ttwo", "--pair", "--version", "3", "--signature", "f", "--url", url]
    script["main"](arguments)
    assert REQUESTS[-1] == (
        "/v1/models/m/versions/3:predict",
        {"signature_name": "f", "instances": [{"text_a": "one", "text_b": "two"}]},
    )


def test_lines_of_the_standard_input(script, url, monkeypatch):
    content = io.TextIOWrapper(io.BytesIO(b"first\r\n\nbroken \xff\nnul \0"))
    monkeypatch.setattr("sys.stdin", content)
    script["main"](["m", "--url", url])
    b64 = [base64.b64encode(text).decode() for text in (b"broken \xff", b"nul \0")]
    assert [instance["text"] for instance in REQUESTS[-1][1]["instances"]] == [
        "first",
        "",
        {"b64": b64[0]},
        {"b64": b64[1]},
    ]


def test_broken_bytes_of_the_command_line_arrive_as_they_are(script, url):
    script["main"](["m", b"\xff".decode("utf-8", "surrogateescape"), "--url", url])
    assert REQUESTS[-1][1] == {"instances": [{"text": {"b64": "/w=="}}]}  # by hand: 0xff


def test_errors_are_told(script, url):
    with pytest.raises(SystemExit, match="answered 404: .*Servable not found"):
        script["main"](["absent", "a", "--url", url])
    with pytest.raises(SystemExit, match="query_rest: with --pair every text must have one tab"):
        script["main"](["m", "a", "--pair", "--url", url])
    with pytest.raises(SystemExit, match="does not answer"):
        script["main"](["m", "a", "--url", "http://127.0.0.1:1"])
