"""The recurrent layer beside those of Keras, which compute the same by other means."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.gradients import without_gradients
from kbert.layers.recurrent.recurrent import OrthogonalBlocks, Recurrent
from tests.check_layer import check_layer

UNITS, WIDTH = 4, 3
INPUTS = np.random.default_rng(1).normal(size=(3, 5, WIDTH)).astype("float32")
MASK = np.arange(5) < np.array([5, 2, 1])[:, None]


def keras_layer(layer: Recurrent) -> Any:
    """Keras' layer with the same weights, on the left-to-right order of the layer's direction."""
    given = {"return_sequences": True, "use_cudnn": False, "go_backwards": layer.backwards}
    if layer.cell == "lstm":
        made = keras.layers.LSTM(layer.units, **given)
    else:
        made = keras.layers.GRU(layer.units, reset_after=layer.cell != "gru", **given)
    made.build(INPUTS.shape)
    bias = layer.bias.numpy()
    if layer.recurrent_bias is not None:
        more = np.concatenate([np.zeros(2 * layer.units), layer.recurrent_bias.numpy()])
        bias = np.stack([bias, more])
    made.set_weights([layer.kernel.numpy(), layer.recurrent_kernel.numpy(), bias])
    return made


def random_layer(**arguments: Any) -> Recurrent:
    layer = Recurrent(UNITS, **arguments)
    layer.build(INPUTS.shape)
    draw = np.random.default_rng(2)
    for weight in layer.weights:
        weight.assign(draw.normal(size=weight.shape))
    return layer


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("cell", ["gru", "gru_reset_after", "lstm"])
def test_numbers_and_gradients(cell: str, backwards: bool):
    layer = random_layer(cell=cell, backwards=backwards)
    other = keras_layer(layer)
    inputs = tf.constant(INPUTS)
    up = np.random.default_rng(3).normal(size=(3, 5, UNITS)) * MASK[..., None]

    def ours() -> Any:
        return layer.output(layer(inputs, MASK))

    def theirs() -> Any:
        states = other(inputs, mask=MASK)
        return states[:, ::-1] if backwards else states

    def gradients(function: Any, weights: list[Any]) -> tuple[Any, list[Any]]:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            states = tf.function(function, autograph=False)()
            total = tf.reduce_sum(states * up.astype("float32"))
        return states, tape.gradient(total, [inputs, *weights])

    states, found = gradients(ours, [w.value for w in layer.weights])
    wanted_states, wanted = gradients(theirs, [w.value for w in other.weights])
    np.testing.assert_allclose(states[MASK], wanted_states[MASK], atol=1e-5)
    bias = wanted[3]
    if cell == "gru_reset_after":
        wanted = [*wanted[:3], bias[0], bias[1, 2 * UNITS :]]
    for one, known in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, known, atol=1e-4)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_ritual(cell: str):
    gates = (3 if cell == "gru" else 4) * UNITS
    check_layer(
        Recurrent,
        {"units": UNITS, "cell": cell, "backwards": True},
        (INPUTS, MASK),
        (3, 5, UNITS if cell == "gru" else 2 * UNITS),
        {"kernel": (WIDTH, gates), "recurrent_kernel": (UNITS, gates), "bias": (gates,)},
    )


@pytest.mark.parametrize("backwards", [False, True])
def test_padding_leaves_the_state(backwards: bool):
    """The last state is that of the real tokens alone, on whichever side the padding stands."""
    layer = random_layer(backwards=backwards)
    for row, count in enumerate(MASK.sum(axis=1)):
        alone = layer.last(layer(INPUTS[row : row + 1, :count]))
        for side in ((0, 3), (3, 0)):
            padded = np.pad(INPUTS[row, :count], (side, (0, 0)), constant_values=9.0)
            mask = np.pad(np.ones(count, bool), side)
            found = layer.last(layer(padded[None], mask[None]))
            np.testing.assert_allclose(found, alone, atol=1e-6)


def test_steps_and_an_initial_state():
    layer = random_layer(cell="lstm")
    state = np.random.default_rng(4).normal(size=(3, 2 * UNITS)).astype("float32")
    states = layer(INPUTS, None, state)
    for time in range(5):
        state = layer.step(INPUTS[:, time], state)
        np.testing.assert_allclose(state, states[:, time], atol=1e-6)
    first = layer.first_state(tf.ones((2, UNITS)))
    np.testing.assert_array_equal(first, [[1.0] * UNITS + [0.0] * UNITS] * 2)


def test_a_constant_is_behind_all_inputs():
    layer, constant = random_layer(), INPUTS[:, 0, 1:]
    joined = np.concatenate([INPUTS[..., :1], np.repeat(constant[:, None], 5, axis=1)], axis=-1)
    found = layer(INPUTS[..., :1], MASK, None, constant)
    np.testing.assert_allclose(found, layer(joined, MASK), atol=1e-6)


def test_states_between_steps_have_many_bits():
    """1 + 2^-9 is no bfloat16: a gate that keeps nearly all of a state must not round it."""
    layer = Recurrent(1, dtype="mixed_bfloat16")
    layer.build((None, None, 1))
    layer.bias.assign([9.0, 0.0, 0.0])  # z = 0.99988
    layer.kernel.assign([[0.0, 0.0, 9.0]])
    layer.recurrent_kernel.assign([[0.0, 0.0, 0.0]])
    inputs = np.ones((1, 400, 1), "float32")
    found = float(layer.last(layer(inputs))[0, 0])
    assert found == pytest.approx(1 - 0.99987661**400, rel=0.02)


def test_exports_have_no_gradients():
    layer = random_layer()
    with without_gradients():
        found = tf.function(lambda: layer(INPUTS), autograph=False)()
    np.testing.assert_allclose(found, layer(INPUTS), atol=1e-6)


def test_orthogonal_blocks():
    for dtype in ("float32", "bfloat16"):
        drawn = OrthogonalBlocks()((4, 12), dtype)
        assert drawn.dtype == dtype
        blocks = np.split(np.asarray(drawn, "float32"), 3, axis=1)
        assert len({block.tobytes() for block in blocks}) == 3
        for block in blocks:
            np.testing.assert_allclose(block @ block.T, np.eye(4), atol=0.03)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="`units` must be at least 1. Received: units=0"):
        Recurrent(0)
    with pytest.raises(ValueError, match="`cell` must be one of .* Received: cell='elman'"):
        Recurrent(3, "elman")
