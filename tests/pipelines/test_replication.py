"""Training with two replicas, by a process of its own whose CPU is two devices."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.optimization.adamw import AdamW
from kbert.pipelines.replication import is_multi_worker
from tests.replica_process import result_of
from tests.small_pipelines import VOCABULARY, small_classifier

# As the program runs them: see there. Gradients of ten losses take long to trace.
RUNS = (pytest.param("descent", marks=pytest.mark.slow), "adamw", "captions")


@pytest.fixture(scope="module", params=RUNS)
def apart(request, repository):
    return result_of("tests.exact_losses", repository, request.param)


def test_two_replicas_learn_what_one_device_learns(apart):
    # In float64, over eight steps; Keras' mean of means would be apart by tenths.
    assert max(apart["weights"].values()) < 1e-9, apart["weights"]
    assert min(apart["learned"].values()) > 0.01, apart["learned"]


def test_the_loss_that_is_shown_is_that_of_the_whole_batch(apart):
    # What attention adds to the loss of captions is in float32.
    assert apart["losses"] < (1e-7 if "captions" in apart["weights"] else 1e-9)


def test_the_mean_over_tokens_is_over_those_of_all_batches(apart):
    # Weighed by rows, as Keras would, it is apart by hundredths.
    if "evaluated" in apart:
        assert apart["evaluated"] == pytest.approx([apart["by_hand"]] * 2, abs=1e-9)


@pytest.fixture(scope="module")
def one_replica():
    """A strategy of one replica, for what needs no second one."""
    return tf.distribute.MirroredStrategy(["CPU:0"])


def test_a_model_knows_the_strategy_that_it_was_made_with(one_replica):
    assert not small_classifier().replication.is_active
    with one_replica.scope():
        model = small_classifier()
    assert model.replication.is_active
    assert model.distribute_strategy.num_replicas_in_sync == 1
    assert not is_multi_worker(one_replica)


def test_one_replica_predicts_and_trains_on_single_batches(one_replica):
    texts = ["a good film", "bad", "the film"]
    with one_replica.scope():
        model = small_classifier()
    model.compile("sgd")
    np.testing.assert_allclose(model.predict(texts), small_classifier().predict(texts), atol=1e-6)
    batch = next(iter(model.dataset(model.pack(texts), np.array([0, 1, 2]))))
    before = model.test_on_batch(*batch, return_dict=True)["loss"]
    shown = model.train_on_batch(*batch, return_dict=True)["loss"]
    assert shown == pytest.approx(before, abs=1e-6)
    assert model.test_on_batch(*batch, return_dict=True)["loss"] < before


def test_what_would_not_be_of_the_whole_batch_is_refused(one_replica):
    outside = AdamW()
    with one_replica.scope():
        model = small_classifier()
        clipping = keras.optimizers.SGD(global_clipnorm=1.0)
        overwriting = AdamW(use_ema=True, ema_overwrite_frequency=3)
        summed = keras.losses.MeanSquaredError(reduction="sum")
    with pytest.raises(ValueError, match="within the scope of the strategy .* Received: a AdamW"):
        model.compile(outside)
    with pytest.raises(ValueError, match=r"must be kbert's AdamW .* SGD\(global_clipnorm=1.0\)"):
        model.compile(clipping)
    with pytest.raises(ValueError, match=r"no ema_overwrite_frequency .* AdamW\(ema_\w+=3\)"):
        model.compile(overwriting)
    with pytest.raises(ValueError, match=r"a mean over the batch .* \(?.*reduction='sum'"):
        model.compile(loss=summed)


def test_the_parts_of_a_row_are_added_before_they_are_squared():
    model = small_classifier()
    model.compile(keras.optimizers.Adam(0.01, beta_2=0.9))
    texts = ["a good good film", "bad film film film"]
    x, y = next(iter(model.dataset(model.pack(texts), np.array([0, 1]))))[:2]
    weights = model.trainable_weights
    (at,) = (i for i, one in enumerate(weights) if one.shape[0] == len(VOCABULARY))
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x, y, model(x, training=True))
    listed = tape.gradient(loss, weights)[at]
    assert len(set(listed.indices.numpy())) < len(listed.indices)
    model.train_on_batch(x, y)
    # Kingma and Ba, algorithm 1: v = (1 - beta_2) g^2, of the gradient as a matrix.
    expected = 0.1 * tf.convert_to_tensor(listed).numpy() ** 2
    np.testing.assert_allclose(model.optimizer._velocities[at], expected, rtol=1e-4, atol=1e-9)
