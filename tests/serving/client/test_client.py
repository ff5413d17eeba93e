"""The client, against the local server, which answers as TF Serving's documents say."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import kbert.serving
from kbert.serving.client.client import Client
from kbert.serving.client.server_errors import (
    BadRequest,
    DeadlineExceeded,
    Overloaded,
    Retries,
    ServerError,
    UnknownModel,
)
from kbert.serving.client.typed_answers import Classification
from tests.serving.topics_server import MODEL, VERSION, Asked, topics_server

QUICK = Retries(most=3, pause=0.01)
TEXTS = ["a", "größer", "", b"\xff\0", "very long indeed"]


@pytest.fixture(scope="module")
def served() -> Iterator[Asked]:
    with topics_server() as asked:
        yield asked


@pytest.fixture
def model(served: Asked) -> Asked:
    served.forget()
    return served


@pytest.fixture(params=["rest", "grpc"])
def url(request: pytest.FixtureRequest, model: Asked) -> str:
    return model.url[request.param]


def client(url: str, **options) -> Client:
    return Client(url, options.pop("name", MODEL), **{"retries": QUICK, **options})


def test_what_the_server_knows(url: str):
    with client(url) as asked:
        assert asked.status() == {VERSION: "AVAILABLE"} and asked.is_ready()
        assert set(asked.signatures()) == {"serving_default", "length", "letters"}
        text = asked.signatures()["serving_default"].inputs["text"]
        assert (text.dtype.name, text.shape) == ("string", (None,))
    with client(url, version=VERSION) as asked:
        assert asked.is_ready()


def test_answers_come_in_order_in_batches(url: str, model: Asked):
    with client(url, max_batch_size=2) as asked:
        found = asked.predict({"text": TEXTS})
    assert found["label"].tolist() == [b"short", b"long", b"short", b"short", b"long"]
    assert found["scores"].tolist()[1] == [0.25, 0.75]
    assert sorted(model.rows) == [1, 2, 2]


def test_a_single_output_and_one_of_free_length(url: str):
    with client(url, max_batch_size=2) as asked:
        # Bytes of UTF-8: ö and ß have two.
        assert asked.predict({"text": TEXTS}, "length")["length"].tolist() == [1, 8, 0, 2, 16]
        letters = asked.predict({"text": TEXTS}, "letters")["letters"]
        assert letters.shape == (5, 16) and letters[3].tolist() == [255, 0] + [0] * 14
        assert asked.predict({"text": []}, "length")["length"].tolist() == []


def test_typed_answers(url: str):
    with client(url) as asked:
        short, long = asked.answers(["a", "very long"])
    assert short == Classification("short", 0.875, {"short": 0.875, "long": 0.125})
    assert isinstance(long, Classification) and long.label == "long"


def test_a_table_is_its_columns(url: str):
    """A list of a table is that of its names, which would be answered too."""
    frame = pd.DataFrame({"id": [1, 2], "text": ["a", "very long"]}, index=[5, 3])
    with client(url) as asked:
        expected = asked.answers(["a", "very long"])
        assert asked.answers({"text": ["a", "very long"]}) == expected
        assert asked.answers(frame) == expected
        for wrong in (frame, {"text": ["a"]}):
            with pytest.raises(TypeError, match="`text` must be a list of texts. Received: [Dd]"):
                asked.predict({"text": wrong})


def test_a_lone_surrogate_is_replaced_as_in_a_model(url: str):
    with client(url) as asked:
        assert asked.predict({"text": ["a\ud83d"]}, "length")["length"].tolist() == [4]


def test_a_server_that_is_busy_is_asked_again(url: str, model: Asked):
    model.refusals = ["UNAVAILABLE"] * 2
    with client(url) as asked:
        assert asked.predict({"text": ["a"]}, "length")["length"].tolist() == [1]
    assert model.refusals == []


def test_and_given_up_in_the_end(url: str, model: Asked):
    model.refusals = ["UNAVAILABLE"] * 9
    with client(url) as asked:
        with pytest.raises(Overloaded, match="answered UNAVAILABLE: .*queue is full"):
            asked.predict({"text": ["a"]})
    assert len(model.refusals) == 5  # once, and three times more


def test_other_errors_are_not_asked_again(url: str, model: Asked):
    model.refusals = ["INTERNAL"] * 2
    with client(url) as asked:
        with pytest.raises(ServerError, match="answered INTERNAL"):
            asked.predict({"text": ["a"]})
    assert len(model.refusals) == 1


def test_the_deadline_holds_for_the_whole_call(url: str, model: Asked):
    with client(url, timeout=5.0) as asked:
        asked.signatures()
        asked.timeout, model.delay = 0.3, 1.5
        start = time.monotonic()
        with pytest.raises(DeadlineExceeded, match="DEADLINE_EXCEEDED"):
            asked.predict({"text": TEXTS})
        assert time.monotonic() - start < 1.4


def test_answers_have_one_deadline_for_all_that_they_ask(url: str, monkeypatch):
    """What the signatures took is not given again to the texts."""
    with client(url, timeout=9.0) as asked:
        known, send = asked.signatures(), asked._transport.predict
        given = []

        def slow(seconds: float):
            time.sleep(0.5)
            return known

        def told(name, signature, inputs, seconds: float):
            given.append(seconds)
            return send(name, signature, inputs, seconds)

        monkeypatch.setattr(asked, "_signatures", None)
        monkeypatch.setattr(asked._transport, "signatures", slow)
        monkeypatch.setattr(asked._transport, "predict", told)
        assert len(asked.answers(["a"])) == 1
    assert len(given) == 1 and given[0] < 8.5 + 1e-3


def test_an_unknown_model(url: str):
    for options in ({"name": "other"}, {"version": 9}):
        with client(url, **options) as asked:
            assert not asked.is_ready()
            with pytest.raises(UnknownModel, match="NOT_FOUND: Servable not found"):
                asked.predict({"text": ["a"]})


def test_a_server_with_other_signatures_since(url: str, model: Asked):
    """A client that has asked before takes those of now: their inputs, outputs and names."""
    with client(url) as asked:
        known = asked.signatures()
        called = known["serving_default"]
        inputs = replace(called, inputs={"old": called.inputs["text"]})
        outputs = replace(called, outputs={**called.outputs, "old": called.outputs["label"]})
        for before in (inputs, outputs):
            asked._signatures = {"serving_default": before}
            assert [one.label for one in asked.answers(["a", "very long"])] == ["short", "long"]
        asked._signatures = {"serving_default": inputs}
        assert asked.predict({"text": ["a"]}, "length")["length"].tolist() == [1]
        assert asked.signatures() == known
        # What is wrong with those of now, too, is asked no second time.
        model.refusals = ["INTERNAL"] * 2
        with pytest.raises(ServerError, match="answered INTERNAL"):
            asked.predict({"text": ["a"]})
        assert len(model.refusals) == 1


def test_an_error_is_told_if_the_signatures_cannot_be_asked_again(url: str, monkeypatch):
    with client(url) as asked:
        asked.signatures()
        gone, calls = Overloaded("UNAVAILABLE", "gone", url), []

        def signatures(seconds: float):
            calls.append(seconds)
            raise gone

        monkeypatch.setattr(asked._transport, "signatures", signatures)
        with pytest.raises(ValueError, match="must be .'text'."):
            asked.predict({"texts": ["a"]}, "length")
        assert len(calls) == 1


def test_nobody_is_there(url: str):
    kind = url.partition("://")[0]
    with client(f"{kind}://127.0.0.1:9", retries=Retries(most=1, pause=0.01)) as asked:
        assert not asked.is_ready()
        with pytest.raises(Overloaded, match="UNAVAILABLE"):
            asked.signatures()


def test_bad_input_is_told_before_it_is_sent(url: str, model: Asked):
    with client(url) as asked:
        for inputs, signature, message in (
            ({"text": ["a"]}, "none", "`signature` must be one of .'length', 'letters', 'serving_"),
            ({"texts": ["a"]}, "length", "`inputs` of the signature 'length' must be .'text'."),
        ):
            with pytest.raises(ValueError, match=message):
                asked.predict(inputs, signature)
        for wrong in ("a single text", None):
            with pytest.raises(ValueError, match="`texts` must be 1 list"):
                asked.answers(wrong)
        for wrong, message in (([["a"]], "0.. must be str or .*'a'"), (["a", None], "1.. must")):
            with pytest.raises(TypeError, match=r"`text\[" + message):
                asked.answers(wrong)
    assert model.rows == []


def test_many_threads_share_a_client(url: str):
    with client(url) as asked, ThreadPoolExecutor(8) as pool:
        texts = [["x" * i] * 3 for i in range(40)]
        found = pool.map(lambda one: asked.predict({"text": one}, "length")["length"], texts)
        assert [lengths.tolist() for lengths in found] == [[i] * 3 for i in range(40)]


def test_the_public_name():
    assert kbert.serving.Client is Client
    with pytest.raises(AttributeError, match="has no attribute 'Clients'"):
        kbert.serving.Clients


def test_urls():
    for url in ("localhost:8500", "ftp://x", "http://", "grpc://"):
        with pytest.raises(ValueError, match="`url` must begin with http://"):
            Client(url, "m")
    for seconds in (0.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="`timeout` must be positive and finite"):
            Client("http://x", "m", timeout=seconds)
    for url in ("http://x", "grpc://x:1"):
        for wrong in (None, ""):
            with pytest.raises(ValueError, match=f"`model` must be a name .*model={wrong!r}"):
                Client(url, wrong)
        with pytest.raises(ValueError, match="`version` must be an integer. .*version='x'"):
            Client(url, "m", "x")


def test_a_refusal_of_the_server_is_a_bad_request(url: str):
    with client(url) as asked:
        transport, known = asked._transport, asked.signatures()
        text = {"text": np.array([b"a"], object)}
        with pytest.raises(BadRequest, match='INVALID_ARGUMENT: Serving signature name: "other"'):
            transport.predict("other", known["length"], text, 5.0)
