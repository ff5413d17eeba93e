"""What decoders of captions do alike, and tiny ones of them with weights drawn at random."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.models.weights import encoder_arrays
from tests.models.encoder_decoders.check_sequence_model import TARGET as LARGE_TARGET

V, M, L = 6, 5, 4
FEATURES = np.random.default_rng(11).normal(size=(3, L, M)).astype("float32")
TARGET = LARGE_TARGET % V
INPUTS = {"features": FEATURES, "target_token_ids": TARGET}


def weights_of(model: Any) -> dict[str, np.ndarray]:
    """Name -> array, in float64."""
    return {name: np.asarray(a, "float64") for name, a in encoder_arrays(model).items()}


def check_saved(model: Any) -> None:
    """A model of the same configuration takes the weights, and gives the same logits."""
    config = model.get_config()
    again = type(model).from_config(keras.tree.map_structure(lambda x: x, config))
    assert again.get_config() == config
    assert sorted(encoder_arrays(again)) == sorted(encoder_arrays(model))
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again(INPUTS)["logits"], model(INPUTS)["logits"])


def check_low_precision(model: Any) -> None:
    """Numbers of few bits give finite logits in float32 near those of many."""
    wanted = model(INPUTS)["logits"].numpy()
    for policy in ("mixed_bfloat16", "bfloat16", "mixed_float16"):
        other = type(model).from_config({**model.get_config(), "dtype": policy})
        other.set_weights(model.get_weights())
        found = other(INPUTS)["logits"]
        assert found.dtype == "float32"
        np.testing.assert_allclose(found, wanted, atol=0.2 * np.abs(wanted).max())
        assert np.abs(found - wanted).max() > 0, policy
        memory = other.encode(INPUTS)
        given = (TARGET[:, :1], tf.constant(0), tf.zeros((len(TARGET), 1, 4), "int32"))
        step, _ = other.decode_step(*given, other.start_decoding(memory))
        np.testing.assert_allclose(step, wanted[:, :1], atol=0.2 * np.abs(wanted).max())


def check_images_and_order(model: Any) -> None:
    """No row depends on another one, and no logits on later tokens; all depend on the image."""
    before = model(INPUTS)["logits"].numpy()
    for row in range(len(TARGET)):
        alone = model({name: x[row : row + 1] for name, x in INPUTS.items()})["logits"]
        np.testing.assert_allclose(alone[0], before[row], atol=1e-5)
    for place in range(TARGET.shape[1]):
        changed = TARGET.copy()
        changed[:, place] = (changed[:, place] + 1) % V
        after = model({**INPUTS, "target_token_ids": changed})["logits"].numpy()
        np.testing.assert_array_equal(before[:, :place], after[:, :place])
        assert np.abs(before[:, place] - after[:, place]).max() > 1e-4
    other = model({**INPUTS, "features": FEATURES[::-1].copy()})["logits"].numpy()
    assert np.abs(before[0] - other[0]).max(axis=-1).min() > 1e-4


def check_steps(model: Any) -> None:
    """Decoding step by step, each hypothesis by its own way through the slots, is in parallel."""
    slots, (rows, steps) = 2, TARGET.shape
    draw = np.random.default_rng(6)
    memory = model.encode(INPUTS)
    state = model.start_decoding(memory, slots)
    path, read = np.zeros((rows, 1, steps), "int32"), np.zeros((rows, 1, 0), "int32")
    for time in range(steps):
        if time:
            parents = draw.integers(0, path.shape[1], (rows, slots))[:, :, None]
            path, read = (np.take_along_axis(x, parents, axis=1) for x in (path, read))
            path[:, :, time] = np.arange(slots)
        tokens = draw.integers(0, V, (rows, path.shape[1], 1)).astype("int32")
        read = np.concatenate([read, tokens], axis=-1)
        logits, state = model.decode_step(
            tf.constant(tokens[..., 0]), tf.constant(time), tf.constant(path), state
        )
        for k in range(path.shape[1]):
            wanted = model.logits(model.target_states(read[:, k], memory))[:, -1]
            np.testing.assert_allclose(logits[:, k], wanted, atol=1e-5)
