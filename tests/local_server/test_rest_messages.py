"""Bodies of REST, against the examples and rules of TF Serving's `api_rest.md`."""

import json

import numpy as np
import pytest
import tensorflow as tf

from kbert.local_server.limits import Refusal
from kbert.local_server.rest_messages import answer_of, inputs_of, parsed
from kbert.serving.format.signatures import Signature, SignatureTensor


def tensor(dtype=tf.string, *rest):
    return SignatureTensor("t:0", dtype, (None, *rest))


ONE = Signature({"text": tensor()}, {})
IMAGE = Signature({"image": tensor()}, {})
TWO = Signature({"tag": tensor(), "signal": tensor(tf.float32, None)}, {})
WHOLE = Signature({"ids": tensor(tf.int32, None)}, {})


def read(value, signature):
    return inputs_of(parsed(json.dumps(value).encode()), signature)


@pytest.mark.parametrize(
    "value",
    [
        {"instances": ["foo", "bar"]},
        {"instances": [{"text": "foo"}, {"text": "bar"}]},
        {"inputs": ["foo", "bar"]},
        {"inputs": {"text": ["foo", {"b64": "YmFy"}]}},
    ],
)
def test_the_forms_of_one_input(value):
    assert read(value, ONE)["text"].tolist() == [b"foo", b"bar"]


@pytest.mark.parametrize("signature", ["serving_default", "attention"])
@pytest.mark.parametrize(
    "value",
    [
        {"instances": [{"b64": "/9gA"}, {"b64": "iVBO"}]},
        {"instances": [{"image": {"b64": "/9gA"}}, {"image": {"b64": "iVBO"}}]},
        {"inputs": [{"b64": "/9gA"}, {"b64": "iVBO"}]},
        {"inputs": {"image": [{"b64": "/9gA"}, {"b64": "iVBO"}]}},
    ],
)
def test_the_forms_of_images(value, signature):
    """Bytes by hand: the beginnings of a JPEG and a PNG file."""
    asked = parsed(json.dumps({"signature_name": signature, **value}).encode())
    assert asked.signature == signature
    assert inputs_of(asked, IMAGE)["image"].tolist() == [b"\xff\xd8\0", b"\x89PN"]


@pytest.mark.parametrize(
    "value, words",
    [
        ({"instances": [{"b64": "/9gA"}, {"b64": "?"}]}, 'each "b64" must be base64'),
        ({"instances": [{"image": {"b64": "/9gA!"}}]}, 'each "b64" must be base64'),
        ({"instances": [{"b64": 5}]}, 'each "b64" must be a string of base64. Received: int'),
        ({"inputs": {"image": [{"b64": None}]}}, "must be a string of base64. Received: NoneType"),
        ({"inputs": {"image": {"b64": "/9gA"}}}, r"`inputs\['image'\]` must have 1 dimension"),
        ({"inputs": {"b64": "/9gA"}}, r"`inputs\['image'\]` must have 1 dimension"),
        ({"instances": [5]}, "the value must be .* of type string. Received: 5, which is no text"),
        ({"instances": [None]}, "Received: null, which is no text"),
    ],
)
def test_images_that_are_none(value, words):
    with pytest.raises(Refusal, match=f"input 'image': .*{words}") as caught:
        read(value, IMAGE)
    assert caught.value.status == 400 and len(caught.value.message) <= 500


@pytest.mark.parametrize(
    "row, keys",
    [
        ({"picture": {"b64": "/9gA"}}, r"\['picture'\]"),
        ({"b64": "/9gA", "name": "a"}, r"\['b64', 'name'\]"),
    ],
)
def test_an_object_of_another_input(row, keys):
    words = rf"row 1, must be bare or an object with \['image'\]. Received: one with {keys}"
    with pytest.raises(Refusal, match=words) as caught:
        read({"instances": [{"b64": "/9gA"}, row]}, IMAGE)
    assert caught.value.status == 400


def test_the_forms_of_two_inputs():
    rows = {
        "instances": [{"tag": "foo", "signal": [1, 2.5]}, {"tag": "bar", "signal": [3, 4]}],
    }
    columns = {"inputs": {"tag": ["foo", "bar"], "signal": [[1, 2.5], [3, 4]]}}
    for value in (rows, columns):
        found = read(value, TWO)
        assert found["tag"].tolist() == [b"foo", b"bar"]
        assert found["signal"].tolist() == [[1.0, 2.5], [3.0, 4.0]]
        assert found["signal"].dtype == np.float32


def test_names_of_signatures():
    assert parsed(b'{"inputs": []}').signature == "serving_default"
    assert parsed(b'{"inputs": [], "signature_name": ""}').signature == "serving_default"
    assert parsed(b'{"inputs": [], "signature_name": "f"}').signature == "f"
    assert parsed(b'\xef\xbb\xbf{"inputs": []}').signature == "serving_default"


@pytest.mark.parametrize(
    "body, words",
    [
        (b"", "JSON Parse error"),
        (b"{", "JSON Parse error"),
        (b"\xff\xfe\xff", "JSON Parse error"),
        (b'{"instances": ["a\xed\xa0\x80b"]}', "JSON Parse error.*codec can't decode"),
        ('{"instances": ["a"]}'.encode("utf-16"), "JSON Parse error.*codec can't decode"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": ' * 200_000, "nested too deeply"),
        (b'{"instances": [' + b"9" * 5000 + b"]}", "JSON Parse error"),
        (b"[]", "not an object"),
        (b"null", "not an object"),
        (b"{}", "either 'instances' or 'inputs'"),
        (b'{"instances": [], "inputs": []}', "either 'instances' or 'inputs'"),
        (b'{"inputs": [], "signature_name": 3}', "'signature_name' must be a string"),
    ],
)
def test_bodies_that_are_none(body, words):
    with pytest.raises(Refusal, match=words) as caught:
        parsed(body)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "value, signature",
    [
        ({"instances": "foo"}, ONE),
        ({"instances": [1]}, ONE),
        ({"instances": [None]}, ONE),
        ({"instances": [["foo"]]}, ONE),
        ({"instances": [{"other": "foo"}]}, ONE),
        ({"instances": [{"b64": "!"}]}, ONE),
        ({"inputs": "foo"}, ONE),
        ({"inputs": {"text": {"text": []}}}, ONE),
        ({"instances": [{"tag": "foo"}]}, TWO),
        ({"instances": ["foo"]}, TWO),
        ({"inputs": ["foo"]}, TWO),
        ({"inputs": {"tag": ["foo"], "signal": [[1]], "more": [1]}}, TWO),
        ({"inputs": {"tag": ["foo"], "signal": [["1"]]}}, TWO),
        ({"inputs": {"tag": ["foo"], "signal": [[1], [1, 2]]}}, TWO),
        ({"inputs": [[1.5]]}, WHOLE),
        ({"inputs": [["1"]]}, WHOLE),
        ({"inputs": [[True]]}, WHOLE),
        ({"inputs": [[2**40]]}, WHOLE),
        ({"inputs": [[10**30]]}, WHOLE),
    ],
)
def test_values_of_another_type_or_shape(value, signature):
    with pytest.raises(Refusal) as caught:
        read(value, signature)
    assert caught.value.status == 400 and len(caught.value.message) <= 500


def test_answers_in_rows_and_in_columns():
    outputs = {"n": np.array([1, 2]), "t": np.array([b"a", "ä".encode()], object)}
    rows = json.loads(answer_of(outputs, True))
    assert rows == {"predictions": [{"n": 1, "t": "a"}, {"n": 2, "t": "ä"}]}
    columns = json.loads(answer_of(outputs, False))
    assert columns == {"outputs": {"n": [1, 2], "t": ["a", "ä"]}}
    # The name of a single output is left out.
    assert json.loads(answer_of({"n": outputs["n"]}, True)) == {"predictions": [1, 2]}
    assert json.loads(answer_of({"n": outputs["n"]}, False)) == {"outputs": [1, 2]}


def test_bytes_and_numbers_that_are_none():
    outputs = {"t_bytes": np.array([[b"a"], [b""]], object)}
    assert json.loads(answer_of(outputs, False)) == {"outputs": [[{"b64": "YQ=="}], [{"b64": ""}]]}
    assert answer_of({"x": np.array([np.nan, np.inf], np.float32)}, False) == (
        b'{"outputs": [NaN, Infinity]}'
    )


def test_outputs_without_rows():
    with pytest.raises(Refusal, match="ask with 'inputs'"):
        answer_of({"a": np.zeros(2), "b": np.zeros(())}, True)


@pytest.mark.parametrize("value", [np.array(1.5), np.array(b"ab", object)])
@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_scalars_are_no_rows(names, value):
    """A text would be taken for rows of its characters."""
    outputs = dict.fromkeys(names, value)
    with pytest.raises(Refusal, match="ask with 'inputs'") as caught:
        answer_of(outputs, True)
    assert caught.value.status == 400
    found = json.loads(answer_of(outputs, False))["outputs"]
    shown = 1.5 if value.dtype.kind == "f" else "ab"
    assert found == (shown if len(names) == 1 else {"a": shown, "b": shown})
