"""The classification head and the model on token ids, against the NumPy reference."""

import itertools
import warnings

import keras
import numpy as np
import pytest

from kbert.optimization.adamw import AdamW
from kbert.optimization.losses import SoftmaxCrossEntropy
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.tasks.classification.head import SequenceClassification, SequenceHead
from kbert.tasks.ner.head import TokenClassification
from tests import numpy_reference as reference
from tests.check_layer import check_layer
from tests.small_bert import INPUTS, MASK, SEGMENTS, assign_head, expected_outputs, small_bert
from tests.tasks.check_task import (
    POOLER,
    check_dropout_of_head,
    check_gradients,
    check_trains_on,
    check_variables,
    saved_and_loaded,
    untrained,
)

HEADS = {
    "pooler": {"classifier/kernel": (12, 3), "classifier/bias": (3,)},
    "two_layer": {
        "classifier/kernel": (12, 3),
        "classifier/bias": (3,),
        "hidden/kernel": (12, 12),
        "hidden/bias": (12,),
    },
}
LABELS = np.array([2, 0, 1, 1])


def made_model(head="pooler", units=3, dropout=0.0, encoder_dropout=0.0, **kwargs):
    keras.utils.set_random_seed(4)
    dtype = {"dtype": kwargs["dtype"]} if "dtype" in kwargs else {}
    encoder = small_bert(dropout=encoder_dropout, attention_dropout=encoder_dropout, **dtype)
    model = SequenceClassification(encoder, units, head, dropout, name="model", **kwargs)
    assign_head(model, reference.random_arrays(HEADS[head], seed=9))
    return model


def expected_logits(head):
    arrays = reference.random_arrays(HEADS[head], seed=9)
    outputs = expected_outputs(segment_ids=SEGMENTS, padding_mask=MASK)
    state = outputs.pooled_output
    if head == "two_layer":
        first = outputs.sequence_output[:, 0]
        state = np.tanh(reference.dense(first, arrays["hidden/kernel"], arrays["hidden/bias"]))
    return reference.dense(state, arrays["classifier/kernel"], arrays["classifier/bias"])


@pytest.mark.parametrize("head", list(HEADS))
def test_numbers(head):
    logits = made_model(head)(INPUTS)
    assert logits.shape == (4, 3) and logits.dtype == "float32"
    np.testing.assert_allclose(logits, expected_logits(head), atol=5e-5)


@pytest.mark.parametrize("head", list(HEADS))
@pytest.mark.parametrize("policy", ["bfloat16", "mixed_bfloat16", "mixed_float16"])
def test_logits_are_float32_in_every_policy(head, policy):
    model = made_model(head, dtype=policy)
    logits = model(INPUTS)
    assert logits.dtype == "float32"
    np.testing.assert_allclose(logits, expected_logits(head), atol=0.3)
    check_gradients(model, LABELS)


@pytest.mark.parametrize("head", list(HEADS))
def test_variable_paths_and_shapes(head):
    shapes = {f"sequence_head/{path}": shape for path, shape in HEADS[head].items()}
    check_variables(made_model(head), shapes)


def test_ritual_of_the_head():
    outputs = {
        "sequence_output": np.ones((2, 5, 8), "float32"),
        "pooled_output": np.ones((2, 8), "float32"),
    }

    class Built(SequenceHead):
        def __init__(
            self,
            units,
            head="pooler",
            dropout=0.1,
            initializer_range=0.02,
            activation="tanh",
            drops_state=True,
            **kwargs,
        ):
            given = (units, head, dropout, initializer_range, activation, drops_state)
            super().__init__(*given, **kwargs)
            self.build(8)

    for head, count, more in (
        ("pooler", 2, {}),
        ("two_layer", 4, {}),
        ("two_layer", 4, {"activation": "relu", "drops_state": False}),
    ):
        init = {"units": 3, "head": head, **more}
        layer = check_layer(
            Built, init, outputs, (2, 3), count, package=None, output_dtype="float32"
        )
        assert keras.saving.get_registered_name(SequenceHead) == "kbert>SequenceHead"
        assert layer.get_config()["head"] == head


def test_the_pooler_of_a_two_layer_head_is_kept_and_not_trained():
    model = made_model("two_layer")
    assert untrained(model) == POOLER
    model.compile(run_eagerly=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Keras warns of variables without gradients
        model.fit(INPUTS, LABELS, verbose=0)


def test_dropout_of_the_head():
    check_dropout_of_head(made_model)


def test_compile_without_arguments():
    model = made_model()
    model.compile()
    assert isinstance(model.optimizer, AdamW) and isinstance(model.loss, SoftmaxCrossEntropy)
    loss, accuracy = model.evaluate(INPUTS, LABELS, verbose=0)
    logits = expected_logits("pooler")
    assert loss == pytest.approx(reference.cross_entropy(logits, LABELS).mean(), rel=1e-4)
    assert accuracy == pytest.approx((logits.argmax(-1) == LABELS).mean())
    given = made_model()
    loss_of_keras = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    given.compile("sgd", loss_of_keras, metrics=[], run_eagerly=True)
    assert isinstance(given.optimizer, keras.optimizers.SGD)
    found = given.evaluate(INPUTS, LABELS, verbose=0)
    assert found == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("soft", [False, True])
def test_fit_is_the_reference_loss_and_step(soft):
    """One step of plain gradient descent on the last bias, whose gradient is known: p - y."""
    model = made_model()
    model.compile(keras.optimizers.SGD(0.5), run_eagerly=True)
    before = np.asarray(model.sequence_head.classifier.bias)
    y = reference.smooth_labels(LABELS, 3, 0.2).astype("float32") if soft else LABELS
    history = model.fit(INPUTS, y, batch_size=4, shuffle=False, verbose=0).history
    logits = expected_logits("pooler")
    assert history["loss"][0] == pytest.approx(reference.cross_entropy(logits, y).mean(), rel=1e-4)
    targets = y if soft else np.eye(3)[y]
    step = 0.5 * (reference.softmax(logits) - targets).mean(0)
    after = np.asarray(model.sequence_head.classifier.bias)
    np.testing.assert_allclose(after, before - step, rtol=1e-4, atol=1e-6)


def test_a_step_is_traced_once():
    model, calls = made_model(), []
    call = model.sequence_head.call
    model.sequence_head.call = lambda *args, **kwargs: calls.append(1) or call(*args, **kwargs)
    model.compile()
    model.fit(INPUTS, LABELS, epochs=2, verbose=0)
    assert len(calls) == 1


def test_sample_and_class_weights():
    weights = np.array([0.5, 2.0, 0.0, 1.0])
    losses = reference.cross_entropy(expected_logits("pooler"), LABELS)
    model = made_model()
    model.compile(run_eagerly=True)
    found = model.evaluate(INPUTS, LABELS, sample_weight=weights, verbose=0)[0]
    assert found == pytest.approx((losses * weights).mean(), rel=1e-4)
    by_class = {0: 3.0, 1: 0.5, 2: 1.0}
    history = model.fit(INPUTS, LABELS, class_weight=by_class, verbose=0).history
    expected = (losses * [by_class[y] for y in LABELS]).mean()
    assert history["loss"][0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    "loss, metrics",
    [
        (keras.losses.CategoricalCrossentropy(from_logits=True), ["accuracy"]),
        (None, [keras.metrics.TopKCategoricalAccuracy(1, name="accuracy")]),
        (keras.losses.SparseCategoricalCrossentropy(from_logits=True), ["accuracy"]),
    ],
)
def test_losses_and_metrics_of_keras_over_class_ids(loss, metrics):
    """They get distributions where they need them; the numbers are those of the ids."""
    expected = reference.cross_entropy(expected_logits("pooler"), LABELS).mean()
    hits = (expected_logits("pooler").argmax(-1) == LABELS).mean()
    model = made_model()
    model.compile("sgd", loss, metrics, run_eagerly=True)
    found = model.test_on_batch(INPUTS, LABELS, return_dict=True)
    assert found["loss"] == pytest.approx(expected, rel=1e-4)
    assert found["accuracy"] == pytest.approx(hits)


@pytest.mark.parametrize(
    "loss",
    [
        "sparse_categorical_crossentropy",
        "categorical_crossentropy",
        keras.losses.sparse_categorical_crossentropy,
        keras.losses.CategoricalCrossentropy(),
        [keras.losses.BinaryCrossentropy(label_smoothing=0.1)],
    ],
)
def test_losses_of_probabilities_are_refused(loss):
    """They would take logits for probabilities, and train something else."""
    model = made_model()
    with pytest.raises(ValueError, match="`loss` must take logits.*which takes probabilities"):
        model.compile("sgd", loss)
    model.compile("sgd", "mse")  # as distillation does


@pytest.mark.slow
def test_saved_and_loaded_it_trains_on_as_if_nothing_had_been(tmp_path):
    def made():
        model = made_model("two_layer")
        model.compile(AdamW(WarmupLinearDecay(1e-2, 10, 2)), SoftmaxCrossEntropy([1.0, 2.0, 3.0]))
        return model

    model = made()
    model.fit(INPUTS, LABELS, epochs=3, verbose=0)
    again = saved_and_loaded(model, tmp_path)
    assert again.loss.get_config() == model.loss.get_config()
    scores = [m.evaluate(INPUTS, LABELS, return_dict=True, verbose=0) for m in (model, again)]
    assert sorted(scores[1]) == ["accuracy", "loss"] and scores[1] == scores[0]
    losses = check_trains_on([model, again], LABELS, epochs=3)
    whole = made().fit(INPUTS, LABELS, epochs=6, verbose=0).history["loss"]
    np.testing.assert_allclose(losses, whole[3:], rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer")
@pytest.mark.parametrize("compiled", [False, True])
def test_saved_before_training(compiled, tmp_path):
    # The optimizer has no state yet, of which Keras warns.
    model = made_model()
    if compiled:
        model.compile()
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.compiled is compiled
    np.testing.assert_array_equal(again(INPUTS), model(INPUTS))


def test_weights_alone(tmp_path):
    model, other = made_model(), made_model()
    other.set_weights([w * 0 for w in other.get_weights()])
    model.save_weights(tmp_path / "w.weights.h5")
    other.load_weights(tmp_path / "w.weights.h5")
    np.testing.assert_array_equal(other(INPUTS), model(INPUTS))


def test_clone():
    model = made_model("two_layer")
    copy = SequenceClassification.from_config(model.get_config())
    assert copy.get_config() == model.get_config()
    assert copy.encoder is not model.encoder
    copy.set_weights(model.get_weights())
    np.testing.assert_array_equal(copy(INPUTS), model(INPUTS))


def test_a_causal_encoder_sums_up_in_its_last_token():
    encoder = small_bert(causal=True)
    model = SequenceClassification(encoder, 3)
    assert model(INPUTS).shape == (4, 3)
    message = '`head` must be "pooler" for a causal encoder, .* Received: head=\'two_layer\''
    with pytest.raises(ValueError, match=message):
        SequenceClassification(encoder, 3, "two_layer")


def test_wrong_arguments():
    with pytest.raises(ValueError, match="`num_labels` must be at least 1. Received: num_labels=0"):
        SequenceClassification(small_bert(), 0)
    message = r"`head` must be one of \['pooler', 'two_layer'\]. Received: head='three_layer'"
    with pytest.raises(ValueError, match=message):
        SequenceClassification(small_bert(), 2, head="three_layer")
    with pytest.raises(ValueError, match=r"`rate`, the `dropout` .* in \[0, 1\). Received: 1.5"):
        SequenceClassification(small_bert(), 2, dropout=1.5)


def test_heads_that_leave_the_pooler_take_it_from_no_other():
    for heads in itertools.permutations((SequenceClassification, TokenClassification)):
        encoder = small_bert()
        one, other = (head(encoder, 2) for head in heads)
        assert untrained(one) == untrained(other) == set()
    encoder = small_bert()
    assert untrained(TokenClassification(encoder, 3)) == POOLER
    assert untrained(TokenClassification(encoder, 3)) == POOLER
    assert untrained(SequenceClassification(encoder, 2)) == set()
    frozen = small_bert()
    frozen.trainable = False
    TokenClassification(frozen, 3)
    assert POOLER < untrained(SequenceClassification(frozen, 2))
    later = small_bert()
    TokenClassification(later, 3)
    later.trainable = False
    assert POOLER < untrained(SequenceClassification(later, 2))


@pytest.mark.parametrize(
    "metric",
    [
        *("sparse_categorical_crossentropy", "crossentropy", "precision", "AUC"),
        keras.metrics.Precision(),
        keras.metrics.Recall(thresholds=[0.0, 0.3]),
        keras.metrics.BinaryAccuracy(),
        keras.metrics.sparse_categorical_crossentropy,
    ],
)
def test_metrics_of_probabilities_are_refused(metric):
    with pytest.raises(ValueError, match="`metrics` must take logits.* which takes probabilities"):
        made_model().compile(metrics=["accuracy", metric])


def test_metrics_of_logits_are_taken():
    model = made_model()
    model.compile(
        metrics=[
            keras.metrics.SparseCategoricalCrossentropy(from_logits=True),
            keras.metrics.SparseTopKCategoricalAccuracy(2),
            "accuracy",
        ],
        run_eagerly=True,
    )
    found = model.evaluate(INPUTS, LABELS, verbose=0)
    assert found[1] == pytest.approx(found[0], rel=1e-5)
