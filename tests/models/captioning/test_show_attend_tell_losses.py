"""What attention adds to the loss: its penalty, and the gradients of REINFORCE."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.recurrent.attention_steps import Sampling
from kbert.models.captioning import show_attend_tell as module
from kbert.models.captioning.show_attend_tell import ShowAttendTell
from tests import numpy_captioning as reference
from tests.models.captioning.check_captioner import FEATURES, INPUTS, TARGET, L, M, V, weights_of
from tests.models.encoder_decoders.check_sequence_model import randomized

LENGTHS = (4, 2, 3)
TARGETS = np.where(np.arange(4) < np.array(LENGTHS)[:, None], (TARGET * 2 + 1) % V, -1)
PLACES = np.array([[0, 3, 1, 1], [2, 2, 0, 3], [1, 0, 3, 2]])


def penalty_above_least(attention: Any) -> float:
    """The doubly stochastic penalty less its least value, that of all places alike."""
    steps, places = attention.shape
    return reference.doubly_stochastic_penalty(attention) - places * (1 - steps / places) ** 2


def small(attention: str) -> ShowAttendTell:
    made = ShowAttendTell(V, M, hidden_dim=6, attention=attention, dropout=0.0)
    return randomized(made, scale=0.7)


def sampled(model: ShowAttendTell, soft_row: int | None = None) -> Any:
    """Outputs in training, with the places of `PLACES`; one row may attend softly."""
    noise = 99.0 * np.eye(L, dtype="float32")[PLACES]
    is_soft = (np.arange(3) == (-1 if soft_row is None else soft_row)).astype("float32")[:, None]
    model._sampling = lambda *_: Sampling(noise, is_soft)
    return model(INPUTS, training=True)


@pytest.mark.parametrize("penalty", [0.5, 1.0])
def test_the_penalty_of_soft_attention(penalty: float):
    """It is of the real steps alone."""
    model = small("soft")
    found = model.attention_loss(TARGETS, model(INPUTS, training=True), penalty)
    assert found.shape == (3,) and found.dtype == "float32"
    for row, length in enumerate(LENGTHS):
        known = reference.caption(
            weights_of(model), FEATURES[row], TARGET[row, :length], attention="soft"
        )
        wanted = penalty * penalty_above_least(known.attention)
        assert float(found[row]) == pytest.approx(wanted, abs=1e-5)
        assert wanted > 0.001


def test_the_mean_has_none():
    model = small("mean")
    found = model.attention_loss(TARGETS, model(INPUTS, training=True), 1.0)
    np.testing.assert_array_equal(found, np.zeros(3))


@pytest.mark.parametrize("penalty", [0.0, 0.7])
def test_the_terms_of_hard_attention(penalty: float):
    """The baseline of a row is the mean reward of the other two, one of which attends softly."""
    model = small("hard")
    found = model.attention_loss(TARGETS, sampled(model, soft_row=2), penalty)
    known = []
    for row, length in enumerate(LENGTHS):
        way: dict[str, Any] = {"attention": "hard", "places": PLACES[row, :length].tolist()}
        way = way if row != 2 else {"attention": "soft"}
        ids = TARGET[row, :length]
        known.append(reference.caption(weights_of(model), FEATURES[row], ids, **way))
    rewards = [
        reference.log_probability(one.logits, TARGETS[row, : LENGTHS[row]])
        for row, one in enumerate(known)
    ]
    for row, (one, length) in enumerate(zip(known, LENGTHS)):
        wanted = penalty * penalty_above_least(one.attention)
        if row != 2:
            baseline = (sum(rewards) - rewards[row]) / 2
            wanted += reference.reinforce_term(
                one.logits, TARGETS[row, :length], one.attention, PLACES[row, :length], baseline
            )
            wanted -= 0.002 * reference.attention_entropy(one.attention)
        assert float(found[row]) == pytest.approx(wanted, abs=1e-4)


def test_one_row_alone_has_no_baseline():
    model = small("hard")
    outputs = {name: x[:1] for name, x in sampled(model).items()}
    found = float(model.attention_loss(TARGETS[:1], outputs, 0.0)[0])
    one = reference.caption(
        weights_of(model), FEATURES[0], TARGET[0], attention="hard", places=PLACES[0]
    )
    wanted = reference.reinforce_term(one.logits, TARGETS[0], one.attention, PLACES[0], 0.0)
    assert found == pytest.approx(wanted - 0.002 * reference.attention_entropy(one.attention), 1e-4)


def test_the_reward_is_a_constant():
    """The logits get no gradient from these terms, the weights do."""
    model = small("hard")
    outputs = {name: tf.constant(x) for name, x in sampled(model).items()}
    with tf.GradientTape() as tape:
        tape.watch(list(outputs.values()))
        total = tf.reduce_sum(model.attention_loss(TARGETS, outputs, 0.5))
    found = tape.gradient(total, [outputs["logits"], outputs["weights"]])
    assert found[0] is None and np.abs(found[1]).max() > 0.1


# --- the expected gradient ---------------------------------------------------------------------

_IMAGE = FEATURES[:1, :2]
_READ, _TARGETS = np.array([[1, 4]]), np.array([[4, 2]])
_NAMES = ("decoder/query", "decoder/key", "decoder/score_vector", "decoder/gate_kernel")
_ROWS, _BATCHES = 128, 40


def expected_loss(weights: dict[str, np.ndarray]) -> float:
    """-E[log p(y | s)] over the four ways to look at two places in two steps."""
    total = 0.0
    for places in product(range(2), repeat=2):
        one = reference.caption(weights, _IMAGE[0], _READ[0], attention="hard", places=places)
        chance = np.exp(reference.log_places(one.attention, places))
        total += chance * reference.caption_cross_entropy(one.logits, _TARGETS[0])
    return total


def gradient_by_differences(weights: dict[str, np.ndarray]) -> np.ndarray:
    """That of `expected_loss` in the weights of `_NAMES`, one number after the other."""
    found = []
    for name in _NAMES:
        for place in np.ndindex(weights[name].shape):
            sides = []
            for step in (1e-5, -1e-5):
                moved = weights[name].copy()
                moved[place] += step
                sides.append(expected_loss({**weights, name: moved}))
            found.append((sides[0] - sides[1]) / 2e-5)
    return np.array(found)


def gradients_of_batches(model: ShowAttendTell, with_terms: bool) -> np.ndarray:
    """The gradient of the mean loss of `_ROWS` rows alike, of each of `_BATCHES` draws."""
    variables = {v.path.split("/", 1)[1]: v.value for v in model.trainable_weights}
    targets = np.tile(_TARGETS, (_ROWS, 1))
    inputs = {
        "features": np.tile(_IMAGE, (_ROWS, 1, 1)),
        "target_token_ids": np.tile(_READ, (_ROWS, 1)),
    }

    @tf.function(autograph=False)
    def gradient() -> Any:
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            logs = tf.nn.log_softmax(outputs["logits"])
            entropy = -tf.gather(logs, targets, batch_dims=2)
            loss = tf.reduce_sum(entropy, axis=-1)
            if with_terms:
                loss += model.attention_loss(targets, outputs, 0.0)
            loss = tf.reduce_mean(loss)
        found = tape.gradient(loss, [variables[name] for name in _NAMES])
        return tf.concat([tf.reshape(one, [-1]) for one in found], axis=0)

    return np.stack([gradient().numpy() for _ in range(_BATCHES)])


def test_the_expected_gradient_is_that_of_the_expected_loss(monkeypatch: pytest.MonkeyPatch):
    """All rows draw. Without REINFORCE's term it is another one."""
    monkeypatch.setattr(module, "_SOFT_SHARE", 0.0)
    monkeypatch.setattr(module, "_ENTROPY", 0.0)
    made = ShowAttendTell(V, M, hidden_dim=3, attention_dim=2, attention="hard", dropout=0.0)
    model = randomized(made, scale=1.0)
    model.seeds.state.assign([3, 0])
    wanted = gradient_by_differences(weights_of(model))

    def deviations(with_terms: bool) -> np.ndarray:
        found = gradients_of_batches(model, with_terms)
        error = found.std(axis=0, ddof=1) / len(found) ** 0.5
        return np.abs(found.mean(axis=0) - wanted) / (error + 1e-6)

    assert deviations(True).max() < 4.5
    assert deviations(False).max() > 20
