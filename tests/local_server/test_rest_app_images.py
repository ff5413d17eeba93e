"""Images over REST, as TF Serving's documents say: objects with base64 under "b64"."""

import base64

import pytest
import requests
import tensorflow as tf

from kbert.local_server.server import LocalServer
from tests.local_server.page_models import MAPS, PIECES

IMAGE = tf.io.encode_png(tf.zeros((4, 6, 3), tf.uint8)).numpy()
CODE = {"b64": base64.b64encode(IMAGE).decode()}
CAPTION = "a giant dög"


@pytest.fixture
def ask(teller_server: LocalServer):
    def ask(body):
        url = f"{teller_server.rest_url}/v1/models/teller:predict"
        return requests.post(url, json=body, timeout=20)

    return ask


@pytest.mark.parametrize("row", [CODE, {"image": CODE}])
def test_rows(ask, row):
    empty = {"image": {"b64": ""}} if "image" in row else {"b64": ""}
    found = ask({"instances": [row, empty]}).json()["predictions"]
    assert [one["caption"] for one in found] == [CAPTION, ""]
    assert found[0]["nbest_caption"] == [CAPTION, "6 x 4", ""] and found[0]["problem"] == ""
    assert found[1]["problem"] == "it is no image of a known format"


@pytest.mark.parametrize("columns", [[CODE], {"image": [CODE]}])
def test_columns(ask, columns):
    found = ask({"inputs": columns}).json()["outputs"]
    assert found["caption"] == [CAPTION] and found["score"] == [-0.25]


@pytest.mark.parametrize("value", [{"instances": [CODE]}, {"inputs": {"image": [CODE]}}])
def test_maps(ask, value):
    found = ask({"signature_name": "attention", **value}).json()
    if "predictions" in found:
        row = found["predictions"][0]
    else:
        row = {key: column[0] for key, column in found["outputs"].items()}
    assert row["tokens"] == list(PIECES)
    assert [one[1][1] for one in row["attention"]] == pytest.approx([one[1][1] for one in MAPS])


@pytest.mark.parametrize(
    "code, words",
    [
        ("no base64!", "input 'image': each \"b64\" must be base64. Received: 10 characters"),
        (["AA=="], "input 'image': each \"b64\" must be a string of base64. Received: list"),
    ],
)
def test_what_is_no_base64_is_told(ask, code, words):
    found = ask({"instances": [CODE, {"b64": code}]})
    assert found.status_code == 400 and words in found.json()["error"]
