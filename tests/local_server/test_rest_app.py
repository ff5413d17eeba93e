"""REST over a real connection: TF Serving's documented replies, and hostile requests."""

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
import requests

from kbert.local_server.limits import Limits
from kbert.local_server.server import LocalServer, ServerOptions
from tests.local_server.conftest import FREE


@pytest.fixture
def ask(server: LocalServer):
    def ask(method: str, path: str, **options):
        found = requests.request(method, server.rest_url + path, timeout=20, **options)
        assert "Traceback" not in found.text
        return found

    return ask


def predict(ask, value, model="meter", **options):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return ask("POST", f"/v1/models/{model}:predict", data=body, **options)


def test_rows_and_columns(ask):
    rows = predict(ask, {"instances": ["a", "größer"]}).json()["predictions"]
    assert [(row["length"], row["label"]) for row in rows] == [(1, "short"), (8, "short")]
    columns = predict(ask, {"inputs": {"text": ["a", "größer"]}}).json()["outputs"]
    assert columns["length"] == [1, 8] and len(columns["scores"]) == 2
    tokens = {"token_ids": [[5, 6], [7, 0]], "segment_ids": [[0, 0], [0, 0]], "lengths": [2, 1]}
    answer = predict(ask, {"signature_name": "tokens", "inputs": tokens}).json()["outputs"]
    # By hand: the weight is row 1, column 1 of 0, 1, 2, ... over 8192, so 3 / 8192.
    assert answer == pytest.approx([11 * 3 / 8192, 7 * 3 / 8192])


def test_a_model_that_is_not_batched(ask):
    rows = [{"context": "a", "choices": ["x", "xx"]}, {"context": "b", "choices": ["xx", "x"]}]
    asked = {"signature_name": "choose", "instances": rows}
    assert predict(ask, asked, "chooser").json() == {"predictions": [1, 0]}


def test_status_and_metadata(ask):
    one = {
        "version": "1",
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    for path in ("/v1/models/meter", "/v1/models/meter/versions/1"):
        assert ask("GET", path).json() == {"model_version_status": [one]}
    found = ask("GET", "/v1/models/meter/metadata").json()
    assert found["model_spec"] == {"name": "meter", "signature_name": "", "version": "1"}
    tensor = found["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"]
    assert tensor["text"]["dtype"] == "DT_STRING"
    assert tensor["text"]["tensor_shape"] == {
        "dim": [{"size": "-1", "name": ""}],
        "unknown_rank": False,
    }


@pytest.mark.parametrize(
    "method, path, status, words",
    [
        ("POST", "/v1/models/other:predict", 404, "Servable not found for request: Latest(other)"),
        ("POST", "/v1/models/meter/versions/9:predict", 404, "Specific(meter, 9)"),
        ("POST", "/v1/models/meter/labels/new:predict", 400, "Unrecognized servable version label"),
        ("GET", "/v1/models/meter/versions/9", 404, "Could not find version 9 of model meter"),
        ("GET", f"/v1/models/meter/versions/{'9' * 40}", 400, "Failed to convert version"),
        ("GET", "/v1/models/other/metadata", 404, "Servable not found"),
        ("GET", "/v1/models", 400, "Malformed request: GET /v1/models"),
        ("GET", "/v1/models/meter:predict", 400, "Malformed request: GET"),
        ("POST", "/v1/models/meter", 400, "Malformed request: POST"),
        ("DELETE", "/v1/models/meter", 400, "Malformed request: DELETE"),
        ("POST", "/v1/models/meter:classify", 501, "classify is left out"),
        ("GET", "/v2/models", 404, "Malformed request"),
        ("TRACE", "/v1/models/meter", 400, "Malformed request: TRACE"),
        ("POST", "/v1/models/meter%0A:predict", 404, "Servable not found"),
        ("POST", "/healthz", 405, "Method Not Allowed"),
        ("GET", "/v1/models/%00%ff/x", 400, "Malformed request"),
    ],
)
def test_unknown_paths_and_models(ask, method, path, status, words):
    found = ask(method, path, data=b'{"instances": ["a"]}' if method == "POST" else None)
    assert found.status_code == status and words in found.json()["error"]


@pytest.mark.parametrize(
    "body, words",
    [
        (b"", "JSON Parse error"),
        (b"{'instances'}", "JSON Parse error"),
        (b"[" * 90_000, "nested too deeply"),
        (b'{"instances": ["a"], "inputs": ["a"]}', "either 'instances' or 'inputs'"),
        (b'{"signature_name": "x", "instances": ["a"]}', "not found in signature def"),
        (b'{"signature_name": "\\ud800", "instances": ["a"]}', "a surrogate"),
        # As TensorFlow Serving refuses them too.
        (b'{"instances": ["\\ud800 a"]}', "a surrogate (\\ud800 to \\udfff) alone"),
        (b'{"instances": []}', "'instances' must have a row"),
        (b'{"instances": ["a", {"text": "b"}]}', "must be all bare or all objects with ['text']"),
        (
            b'{"signature_name": "tokens", "inputs": {"token_ids": [[1, true]], '
            b'"segment_ids": [[0, 0]], "lengths": [2]}}',
            "input 'token_ids': a boolean is no int32",
        ),
        (b'{"instances": [1, 2]}', "elements of type string"),
        (b'{"instances": ["a", ["b"]]}', "one shape"),
        (b'{"inputs": {"other": ["a"]}}', "inputs must be ['text']"),
        (b'{"inputs": "a"}', "must have 1 dimension"),
        (b'{"instances": ["a"' + b', "a"' * 1024 + b"]}", "may have 1024 rows, and has 1025"),
    ],
)
def test_bodies_that_do_not_fit(ask, body, words):
    found = predict(ask, body)
    assert found.status_code == 400 and words in found.json()["error"]


def test_huge_bodies(ask, server):
    found = predict(ask, b" " * 150_000)
    assert found.status_code == 413 and "larger than 100000 bytes" in found.json()["error"]
    parts = (b" " * 1000 for _ in range(150))
    assert predict_in_parts(ask, parts).status_code == 413
    address = urlsplit(server.rest_url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(
            b"POST /v1/models/meter:predict HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n"
        )
        connection.settimeout(9)
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")


def predict_in_parts(ask, parts):
    return ask("POST", "/v1/models/meter:predict", data=parts)


def test_heads_that_are_none(server):
    address = urlsplit(server.rest_url)
    long = b"GET / HTTP/1.1\r\n" + b"x" * 99_999
    for head in (b"\x16\x03\x01\x02\x00\n\n\n", b"GET\r\n\r\n", long):
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.settimeout(9)
            connection.sendall(head)
            assert connection.recv(1000).startswith(b"HTTP/1.1 400")


def test_other_names_and_other_pages(ask):
    found = ask("GET", "/v1/models/meter", headers={"Host": "evil.example:8501"})
    assert found.status_code == 403 and "not to be asked as" in found.json()["error"]
    assert ask("GET", "/v1/models/meter", headers={"Host": "localhost:1"}).status_code == 200
    found = predict(ask, {"instances": ["a"]}, headers={"Sec-Fetch-Site": "cross-site"})
    assert found.status_code == 403


def test_a_version_of_thousands_of_digits(ask):
    found = ask("GET", "/v1/models/meter/versions/" + "9" * 5000)
    assert found.status_code == 400 and "Failed to convert version" in found.json()["error"]
    assert ask("GET", "/v1/models/meter/versions/" + "0" * 5000 + "1").status_code == 200


def test_health_and_metrics(ask):
    assert ask("GET", "/healthz").json() == {"status": "alive"}
    assert ask("GET", "/readyz").json()["models"] == ["chooser", "meter"]
    predict(ask, {"instances": ["a"]})
    page = ask("GET", "/monitoring/prometheus/metrics")
    assert page.headers["content-type"].startswith("text/plain")
    assert ':tensorflow:serving:request_count{model_name="meter",status="OK"}' in page.text
    counted = ':tensorflow:serving:request_count{model_name="meter",status="INVALID_ARGUMENT"}'
    predict(ask, b"no JSON")
    assert counted in ask("GET", "/monitoring/prometheus/metrics").text
    assert "other" not in page.text  # names that clients make up are no labels


def test_many_at_a_time_get_their_own_rows(ask):
    def lengths(number: int) -> list[int]:
        asked = {"instances": ["x" * number, "x" * (number + 1)]}
        return [row["length"] for row in predict(ask, asked).json()["predictions"]]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lengths, range(60))) == [[n, n + 1] for n in range(60)]


def test_load_is_shed_and_time_is_held(base):
    limits = Limits(max_concurrency=2, timeout=0.6)
    with LocalServer(base, ServerOptions(**{**FREE, "grpc_port": -1}, limits=limits)) as server:
        url = f"{server.rest_url}/v1/models/meter:predict"
        queue = server.store.models["meter"].pick().queue
        run, go = queue._run, threading.Event()
        queue._run = lambda *arguments: (go.wait(5), run(*arguments))[1]
        with ThreadPoolExecutor(2) as pool:
            slow = [pool.submit(requests.post, url, json={"inputs": ["a"]}) for _ in range(2)]
            time.sleep(0.3)
            full = requests.post(url, json={"inputs": ["a"]}, timeout=5)
            assert full.status_code == 503 and full.headers["Retry-After"] == "1"
            assert "The server is full" in full.json()["error"]
            assert requests.get(f"{server.rest_url}/healthz", timeout=5).status_code == 200
            for one in slow:
                assert one.result().status_code == 504
                assert one.result().json() == {"error": "There was no answer in time"}
        go.set()
        assert requests.post(url, json={"inputs": ["abc"]}, timeout=5).json()["outputs"][
            "length"
        ] == [3]
        with socket.create_connection((server.options.host, urlsplit(url).port)) as slow_client:
            slow_client.settimeout(5)
            slow_client.sendall(
                b"POST /v1/models/meter:predict HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: 20\r\n\r\n{"
            )
            assert slow_client.recv(1000).startswith(b"HTTP/1.1 408")
