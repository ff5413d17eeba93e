"""Lone surrogates. Expected values by hand."""

import json

import pytest

from kbert.data.tables.columns import without_surrogates


@pytest.mark.parametrize("text", ["", "plain", "Möller 🐸", json.loads('"\\ud83d\\udc38"')])
def test_text_without_lone_surrogates_stays(text):
    assert without_surrogates(text, "f") == text


def test_a_lone_surrogate_is_an_error_or_replaced():
    text = json.loads('"é\\ud800x\\udc00"')
    message = r"f, `text`: the value must be text that UTF-8 can hold\. Received: a lone surrogate "
    message += r"'\\ud800' at code point 1\. Correct the escape\.$"
    with pytest.raises(ValueError, match=message):
        without_surrogates(text, "f, `text`")
    assert without_surrogates(text, "f", "replace") == "é\ufffdx\ufffd"
