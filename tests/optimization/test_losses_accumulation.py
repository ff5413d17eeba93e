"""Several small batches make the update of one large batch, in Keras' own accumulation."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.optimization.adamw import AdamW
from kbert.optimization.losses import accumulation_weights
from kbert.optimization.next_token_losses import LabelSmoothedCrossEntropy
from kbert.optimization.schedules import InverseSquareRootDecay

ROWS, STEPS, LENGTH, VOCABULARY = 2, 3, 5, 7
# Rows of two updates of three batches of two rows; the real tokens of a batch differ much.
LENGTHS = np.array([[5, 5, 1, 0, 2, 1], [3, 1, 0, 0, 5, 4]])
draw = np.random.default_rng(7)
IDS = draw.integers(0, VOCABULARY, (2, STEPS * ROWS, LENGTH))
TARGETS = draw.integers(0, VOCABULARY, IDS.shape)
TARGETS[np.arange(LENGTH) >= LENGTHS[:, :, None]] = -1
TOKENS = LENGTHS.reshape(-1, ROWS).sum(axis=1).tolist()


def test_weights_by_hand():
    # 16 tokens in an update of four batches: each weight is a quarter of the batch's tokens.
    assert accumulation_weights([1, 10, 0, 5, 2, 2, 2, 2], 4) == [0.25, 2.5, 0, 1.25, 1, 1, 1, 1]
    assert accumulation_weights([3, 0, 8], 1) == [1, 0, 1]
    assert accumulation_weights([0, 0], 2) == [0, 0]
    assert accumulation_weights([], 2) == []
    assert accumulation_weights(np.array([1, 3]), 2) == [0.5, 1.5]


def made_model(dtype):
    keras.utils.set_random_seed(3)
    # The gradient of the table is sparse in TensorFlow.
    table = keras.layers.Embedding(VOCABULARY, 4, name="table", dtype=dtype)
    dense = keras.layers.Dense(VOCABULARY, name="dense", dtype=dtype)
    model = keras.Sequential([keras.Input((LENGTH,), dtype="int32"), table, dense])
    for variable in model.trainable_variables:
        variable.assign(np.random.default_rng(4).normal(size=variable.shape))
    return model


def trained(optimizer, batches, dtype="float64", in_graph=True):
    """Applies the gradients of each batch (ids, targets, sample weight of its rows)."""
    model, loss = made_model(dtype), LabelSmoothedCrossEntropy()
    optimizer.build(model.trainable_variables)

    def step(ids, targets, weights):
        with tf.GradientTape() as tape:
            value = loss(targets, model(ids, training=True), sample_weight=weights)
        variables = [v.value for v in model.trainable_variables]
        optimizer.apply(tape.gradient(value, variables))

    run = tf.function(step, reduce_retracing=True) if in_graph else step
    for ids, targets, weight in batches:
        weights = tf.constant(weight, dtype, (len(ids),))
        run(tf.constant(ids), tf.constant(targets), weights)
    return [np.asarray(v) for v in model.trainable_variables]


def large_batches():
    return [(ids, targets, 1.0) for ids, targets in zip(IDS, TARGETS)]


def small_batches(weights):
    ids, targets = (array.reshape(-1, ROWS, LENGTH) for array in (IDS, TARGETS))
    return list(zip(ids, targets, weights, strict=True))


@pytest.mark.parametrize("in_graph", [True, False])
def test_sgd_in_double_precision(in_graph):
    weights = accumulation_weights(TOKENS, STEPS)
    expected = trained(keras.optimizers.SGD(0.5), large_batches(), in_graph=in_graph)
    optimizer = keras.optimizers.SGD(0.5, gradient_accumulation_steps=STEPS)
    found = trained(optimizer, small_batches(weights), in_graph=in_graph)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


def test_sgd_without_weights_is_another_training():
    expected = trained(keras.optimizers.SGD(0.5), large_batches())
    optimizer = keras.optimizers.SGD(0.5, gradient_accumulation_steps=STEPS)
    found = trained(optimizer, small_batches([1.0] * len(TOKENS)))
    assert max(np.abs(a - b).max() for a, b in zip(found, expected, strict=True)) > 1e-2


def test_batches_are_cut_to_their_own_length():
    # Small batches need less padding: rows of other lengths than in the large batch.
    weights = accumulation_weights(TOKENS, STEPS)
    small = [
        (ids[:, :most], targets[:, :most], weight)
        for ids, targets, weight in small_batches(weights)
        for most in [max(1, int((targets >= 0).sum(axis=1).max()))]
    ]
    assert len({ids.shape for ids, _, _ in small}) > 2
    expected = trained(keras.optimizers.SGD(0.5), large_batches())
    optimizer = keras.optimizers.SGD(0.5, gradient_accumulation_steps=STEPS)
    for a, b in zip(trained(optimizer, small), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("clip", [None, 0.05])
@pytest.mark.parametrize("schedule", [False, True])
def test_adamw(clip, schedule):
    def made(**options):
        rate = InverseSquareRootDecay(4, peak=0.05) if schedule else 0.05
        # An epsilon above the noise of float32: Adam divides small gradients by their own size.
        return AdamW(rate, weight_decay=0.1, epsilon=1e-3, global_clipnorm=clip, **options)

    expected = trained(made(), large_batches(), "float32")
    optimizer = made(gradient_accumulation_steps=STEPS)
    weights = accumulation_weights(TOKENS, STEPS)
    found = trained(optimizer, small_batches(weights), "float32")
    assert int(optimizer.iterations) == 2
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)
    start = [np.asarray(v) for v in made_model("float32").trainable_variables]
    assert all(np.abs(a - b).max() > 1e-3 for a, b in zip(found, start, strict=True))


def test_a_schedule_counts_updates():
    optimizer = AdamW(InverseSquareRootDecay(4, peak=0.4), gradient_accumulation_steps=2)
    weight = keras.Variable([1.0], name="kernel")
    optimizer.build([weight])
    rates = []
    for _ in range(8):
        rates.append(float(optimizer.learning_rate))
        optimizer.apply([keras.ops.ones((1,))])
    np.testing.assert_allclose(rates, np.repeat([0.1, 0.2, 0.3, 0.4], 2), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_fit_with_sample_weights():
    # What a training does: data with a weight a row, Keras' own loop, and metrics without weights.
    ends, losses = [], []
    weights = accumulation_weights(TOKENS, STEPS)
    for batches, steps in ((large_batches(), None), (small_batches(weights), STEPS)):
        model = made_model("float32")
        optimizer = AdamW(0.05, epsilon=1e-3, gradient_accumulation_steps=steps)
        model.compile(optimizer, LabelSmoothedCrossEntropy())
        rows = len(batches[0][0])
        data = [(ids, y, np.full(rows, w, "float32")) for ids, y, w in batches]
        history = model.fit((batch for batch in data), shuffle=False, verbose=0).history
        ends.append([np.asarray(v) for v in model.trainable_variables])
        losses.append(history["loss"][0])
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)
    # The loss that Keras shows is that of the large batches, at the same weights.
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


@pytest.mark.parametrize(
    "tokens, steps, message",
    [
        ([1], 0, "`steps` must be at least 1. Received: steps=0"),
        ([1, 2, 3], 2, "multiple of 2 batches: leave out the last 1. Received: 3 batches"),
        ([1, -2], 2, "`tokens` must not be negative. Received: -2"),
    ],
)
def test_errors(tokens, steps, message):
    with pytest.raises(ValueError, match=message):
        accumulation_weights(tokens, steps)
