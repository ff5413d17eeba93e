"""Requests that do not fit are refused by name, whatever their shapes; others pass unchanged."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.models.distilbert import DistilBert
from kbert.pipelines.signatures import question_specs, text_specs, token_specs
from kbert.serving.export.request_checks import InputLimits, checked
from tests.small_pipelines import small_encoder

LIMITS = InputLimits(vocabulary_size=10, num_segments=2, max_sequence_length=4)


def fed(specs: list[tf.TensorSpec], limits: InputLimits = LIMITS) -> Any:
    """The checks in a graph that is fed any shape, as a server feeds it."""
    any_shape = [tf.TensorSpec(None, spec.dtype) for spec in specs]

    def checks(*inputs: tf.Tensor) -> list[tf.Tensor]:
        # The graph is told the signature's shapes, which are not those that come.
        for one, spec in zip(inputs, specs):
            one.set_shape(spec.shape)
        return [tf.identity(one) for one in checked(inputs, specs, limits)]

    function = tf.function(checks, any_shape, autograph=False)

    def run(*inputs: Any) -> list[np.ndarray]:
        tensors = [tf.constant(one, spec.dtype) for one, spec in zip(inputs, specs, strict=True)]
        return [one.numpy() for one in function(*tensors)]

    return run


TOKENS = fed(token_specs())
TEXT = fed(text_specs(False))
QUESTION = fed(question_specs())
CHOICES = fed(
    [
        tf.TensorSpec((None,), tf.string, name="context"),
        tf.TensorSpec((None, None), tf.string, name="choices"),
    ]
)
POINTS = fed([tf.TensorSpec((None, 3), tf.float32, name="points")])


@pytest.mark.parametrize(
    "run, inputs, words",
    [
        (TEXT, ["a"], "`text` must have the shape [rows]. Received: shape=[]"),
        (TEXT, [[["a", "b"]]], "`text` must have the shape [rows]. Received: shape=[1 2]"),
        (QUESTION, [["a"], [["b"]]], "`context` must have the shape [rows]. Received: shape=[1 1]"),
        (QUESTION, [["a"], "b"], "`context` must have the shape [rows]. Received: shape=[]"),
        (
            *(QUESTION, [["a"], ["b", "c"]]),
            "`context` must have as many rows as `question`. Received: 2 and 1",
        ),
        (
            *(CHOICES, [["a"], np.zeros((1, 0), object)]),
            "`choices` must have the shape [rows, any]. Received: shape=[1 0]",
        ),
        (CHOICES, [["a"], [["b"]] * 2], "`choices` must have as many rows as `context`. Received"),
        (POINTS, [[[1.0, 2.0]]], "`points` must have the shape [rows, 3]. Received: shape=[1 2]"),
        (POINTS, [[[[1.0]]]], "`points` must have the shape [rows, 3]. Received: shape=[1 1 1]"),
        (TOKENS, [1, 1, 1], "`token_ids` must have the shape [rows, any]. Received: shape=[]"),
        (TOKENS, [[[1]], [[0]], [[1]]], "`lengths` must have the shape [rows]. Received: shape=[1"),
        (TOKENS, [[[1]], [[0]], [1, 1]], "`lengths` must have as many rows as `token_ids`"),
        (TOKENS, [[[1, 2]], [[0]], [1]], "`segment_ids` must have as many tokens as `token_ids`"),
        (TOKENS, [[[1] * 5], [[0] * 5], [1]], "at most 4 tokens a row. Received: 5"),
        (TOKENS, [[[1, 10]], [[0, 0]], [2]], "`token_ids` must be in [0, 10). Received: 10"),
        (TOKENS, [[[1, -5]], [[0, 0]], [2]], "`token_ids` must be in [0, 10). Received: -5"),
        (TOKENS, [[[1, 2]], [[0, 7]], [2]], "`segment_ids` must be in [0, 2). Received: 7"),
        (TOKENS, [[[1, 2]], [[0, -1]], [2]], "`segment_ids` must be in [0, 2). Received: -1"),
        (TOKENS, [[[1, 2]], [[0, 0]], [3]], "`lengths` must be in [1, 2]. Received: 3"),
        (TOKENS, [[[1, 2]], [[0, 0]], [0]], "`lengths` must be in [1, 2]. Received: 0"),
        (TOKENS, [np.zeros((1, 0)), np.zeros((1, 0)), [0]], "`token_ids` must have the shape"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(run: Any, inputs: list[Any], words: str):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        run(*inputs)
    assert words in str(caught.value)


def test_what_fits_passes():
    assert TEXT(["", b"\xff"])[0].tolist() == [b"", b"\xff"]
    tokens = [[[1, 9], [0, 3]], [[0, 1], [0, 0]], [2, 1]]
    assert [one.tolist() for one in TOKENS(*tokens)] == tokens
    assert CHOICES(["a"], [["b", "c"]])[1].tolist() == [[b"b", b"c"]]


def test_no_rows_pass():
    assert TEXT(np.zeros(0, object))[0].shape == (0,)
    for width in (0, 1, 4):
        none = TOKENS(np.zeros((0, width)), np.zeros((0, width)), np.zeros(0))
        assert none[0].shape == (0, width)


_SIZES = st.lists(st.integers(0, 5), max_size=3)


@st.composite
def requests(draw: st.DrawFn) -> list[np.ndarray]:
    """Arrays of numbers, in about half of all cases of shapes that fit each other."""
    rows, width = draw(st.integers(0, 3)), draw(st.integers(0, 5))
    shapes = [(rows, width), (rows, width), (rows,)]
    if draw(st.booleans()):
        shapes[draw(st.integers(0, 2))] = tuple(draw(_SIZES))
    seed, ends = draw(st.integers(0, 99)), draw(st.sampled_from([(10, 2, 4), (12, 4, 6)]))
    numbers = np.random.default_rng(seed)
    return [numbers.integers(0 if i < 2 else 1, ends[i], shape) for i, shape in enumerate(shapes)]


@given(requests())
def test_exactly_what_fits_passes(arrays: list[np.ndarray]):
    """The rules once more, in NumPy."""
    ids, segments, lengths = arrays
    fits = ids.ndim == 2 and segments.shape == ids.shape and lengths.shape == ids.shape[:1]
    fits = fits and ids.shape[1] <= 4 and bool(np.all((0 <= ids) & (ids < 10)))
    fits = fits and bool(np.all((0 <= segments) & (segments < 2)))
    fits = fits and bool(np.all((1 <= lengths) & (lengths <= ids.shape[1])))
    if fits:
        found = TOKENS(*arrays)
        assert all(np.array_equal(one, array) for one, array in zip(found, arrays))
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match="`(token|segment|lengths)"):
            TOKENS(*arrays)


def test_the_limits_of_a_model():
    encoder = small_encoder()
    assert InputLimits.of(SimpleNamespace(encoder=encoder)) == InputLimits(
        encoder.vocabulary_size, 2, 32
    )
    # Its segments are not read: whatever they are, they are no fault.
    distil = DistilBert(10, 8, 1, 2, 16, 4)
    assert InputLimits.of(SimpleNamespace(encoder=distil)) == InputLimits(10, 0, 4)
    assert InputLimits.of(object()) == InputLimits()
    ids = [[[99]], [[5]], [1]]
    assert fed(token_specs(), InputLimits())(*ids)[0].tolist() == [[99]]
