"""Words in the places of [MASK], by hand and against Python's own strings."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.text.sequences.masking import filled
from kbert.text.vocabulary import BERT_TOKENS, ROBERTA_TOKENS


def fill(texts, words, special_tokens=BERT_TOKENS):
    ragged = tf.ragged.constant(words, tf.string, 1)
    found = filled(tf.constant(texts, tf.string), ragged, special_tokens)
    return [text.decode("utf-8", "surrogateescape") for text in found.numpy()]


@pytest.mark.parametrize(
    "text, words, expected",
    [
        ("a [MASK] b [MASK].", ["x", "y"], "a x b y."),
        ("[MASK]", ["x"], "x"),
        ("[MASK][MASK]", ["x", "y"], "xy"),
        ("", [], ""),
        ("none", [], "none"),
        ("[[MASK]]", ["x"], "[x]"),
        ("[mask] [MASK ]", [], "[mask] [MASK ]"),
        # The rest of a word joins what stands before it.
        ("play[MASK] it", ["##ing"], "playing it"),
        ("play \n[MASK] it", ["##ing"], "playing it"),
        ("[MASK] [MASK]", ["play", "##ing"], "playing"),
        ("[MASK] x", ["##ing"], "ing x"),
        ("a [MASK]", ["##"], "a ##"),
        ("C [MASK]", ["#"], "C #"),
        ("中 [MASK] \U0001f600", ["中"], "中 中 \U0001f600"),
        ("a\0b [MASK]", ["x"], "a\0b x"),
    ],
)
def test_by_hand(text, words, expected):
    assert fill([text], [words]) == [expected]
    # The same among others.
    others = fill(["[MASK] [MASK]!", text, ""], [["p", "q"], words, []])
    assert others == ["p q!", expected, ""]


@pytest.mark.parametrize(
    "text, words, expected",
    [
        ("a <mask> b <mask>.", [" x", " y"], "a x b y."),
        ("a<mask>", [" x"], "a x"),
        ("<mask> b ", [" x"], "x b "),
        (" <mask>\n", [" x"], "x\n"),
        ("play <mask> it", ["ing"], "playing it"),
        ("<mask><mask>", [" x", "y"], "xy"),
        ("none [MASK] ", [], "none [MASK] "),
    ],
)
def test_words_of_bytes_bring_their_space(text, words, expected):
    """As transformers' fill-mask: "<mask>" takes the white space before it with it."""
    assert fill([text], [words], ROBERTA_TOKENS) == [expected]


def test_what_is_no_utf8_stays():
    assert fill([b"\xff [MASK] \xc3"], [["x"]]) == ["\udcff x \udcc3"]


def test_no_rows():
    found = filled(tf.zeros((0,), tf.string), tf.ragged.constant([], tf.string, 1), BERT_TOKENS)
    assert found.shape == (0,)


def test_many_masks():
    draw = np.random.default_rng(1)
    pieces = ["".join(draw.choice(list("ab [M]")) for _ in range(3)) for _ in range(400)]
    words = [f"w{i}" for i in range(399)]
    expected = pieces[0] + "".join(w + p for w, p in zip(words, pieces[1:], strict=True))
    assert fill(["[MASK]".join(pieces)], [words]) == [expected]


def test_too_few_words_leave_no_error():
    # It cannot happen, as each [MASK] is one token; were it so, a server must not stop.
    assert fill(["a [MASK] b [MASK]"], [["x"]]) == ["a x b "]
