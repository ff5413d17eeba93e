"""A dense layer over the states of all tokens, against the NumPy reference."""

import warnings

import keras
import numpy as np
import pytest
from keras.losses import SparseCategoricalCrossentropy as SparseLoss

from kbert.optimization.adamw import AdamW
from kbert.optimization.sequence_losses import TokenAccuracy, TokenCrossEntropy
from kbert.tasks.ner.head import TokenClassification
from tests import numpy_reference as reference
from tests.small_bert import INPUTS, MASK, SEGMENTS, TOKENS, expected_outputs, small_bert
from tests.tasks.check_task import (
    POOLER,
    check_dropout_of_head,
    check_trains_on,
    check_variables,
    saved_and_loaded,
    untrained,
)

HEAD = {"kernel": (12, 3), "bias": (3,)}
ARRAYS = reference.random_arrays(HEAD, seed=9)
# Class ids, -1 where a token counts nothing: [CLS], later pieces of words, padding.
LABELS = np.array([[-1, 0, 1, 2, -1, -1], [-1, 1, -1, 0, 2, 2], [2, -1, 1, -1, -1, 0], [-1] * 6])
COUNTS = LABELS >= 0


def made_model(dropout=0.0, **kwargs):
    dtype = {"dtype": kwargs["dtype"]} if "dtype" in kwargs else {}
    encoder = small_bert(dropout=0.0, attention_dropout=0.0, **dtype)
    model = TokenClassification(encoder, 3, dropout, name="model", **kwargs)
    for name, array in ARRAYS.items():
        getattr(model.token_head, name).assign(array)
    return model


def expected_logits():
    states = expected_outputs(segment_ids=SEGMENTS, padding_mask=MASK).sequence_output
    return reference.dense(states, ARRAYS["kernel"], ARRAYS["bias"])


def losses_of_tokens(shares):
    return -(shares * reference.log_softmax(expected_logits())).sum(axis=-1)


def test_numbers():
    logits = made_model()(INPUTS)
    assert logits.shape == (4, 6, 3) and logits.dtype == "float32"
    np.testing.assert_allclose(logits, expected_logits(), atol=5e-5)
    expected = reference.dense(
        expected_outputs().sequence_output, ARRAYS["kernel"], ARRAYS["bias"]
    )
    np.testing.assert_allclose(made_model()({"token_ids": TOKENS}), expected, atol=5e-5)


def test_logits_are_float32_in_low_precision():
    model = made_model(dtype="mixed_bfloat16")
    logits = model(INPUTS)
    assert logits.dtype == "float32" and model.token_head.kernel.dtype == "float32"
    np.testing.assert_allclose(logits, expected_logits(), atol=0.4)


def test_variable_paths_and_shapes():
    model = made_model()
    check_variables(model, {f"token_head/{path}": shape for path, shape in HEAD.items()})
    assert untrained(model) == POOLER
    assert model.head_layers() == {"classifier": model.token_head}


def test_dropout_of_the_head():
    check_dropout_of_head(made_model)


def test_compile_without_arguments():
    model = made_model()
    model.compile(run_eagerly=True)
    assert isinstance(model.optimizer, AdamW) and isinstance(model.loss, TokenCrossEntropy)
    found = model.evaluate(INPUTS, LABELS, verbose=0, return_dict=True)
    shares = np.where(COUNTS[..., None], np.eye(3)[LABELS], 0.0)
    assert found["loss"] == pytest.approx(losses_of_tokens(shares).sum() / 10, rel=1e-4)
    right = (expected_logits().argmax(-1) == LABELS)[COUNTS]
    assert found["accuracy"] == pytest.approx(right.mean())


def test_accuracy_is_over_tokens_of_all_batches():
    model = made_model()
    model.compile(run_eagerly=True)
    found = model.evaluate(INPUTS, LABELS, batch_size=3, verbose=0, return_dict=True)
    right = (expected_logits().argmax(-1) == LABELS)[COUNTS]
    assert found["accuracy"] == pytest.approx(right.mean())  # the second batch has no token


def test_fit_on_distributions_is_the_reference_step():
    """One step of plain gradient descent on the bias, whose gradient is known: p - t."""
    shares = np.random.default_rng(1).dirichlet(np.ones(3), (4, 6)) * COUNTS[..., None]
    model = made_model()
    model.compile(keras.optimizers.SGD(0.5), TokenCrossEntropy("sequence"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Keras warns of variables without gradients
        history = model.fit(INPUTS, shares, batch_size=4, shuffle=False, verbose=0).history
    assert history["loss"][0] == pytest.approx(losses_of_tokens(shares).sum() / 4, rel=1e-4)
    p = reference.softmax(expected_logits()) * COUNTS[..., None]
    after = ARRAYS["bias"] - 0.5 * (p - shares).sum((0, 1)) / 4
    np.testing.assert_allclose(model.token_head.bias, after, rtol=1e-4, atol=1e-6)


def test_saved_and_loaded_it_trains_on(tmp_path):
    model = made_model()
    model.compile(AdamW(1e-2), TokenCrossEntropy("sequence"), run_eagerly=True)
    model.fit(INPUTS, LABELS, epochs=2, verbose=0)
    again = saved_and_loaded(model, tmp_path)
    assert (again.num_labels, again.dropout, again.loss.per) == (3, 0.0, "sequence")
    check_trains_on([model, again], LABELS, epochs=2)


def test_clone():
    model = made_model(dropout=0.2)
    stored = keras.saving.serialize_keras_object(model)
    assert stored["registered_name"] == "kbert>TokenClassification"
    copy = TokenClassification.from_config(model.get_config())
    assert copy.encoder is not model.encoder and copy.get_config() == model.get_config()


def test_wrong_arguments():
    with pytest.raises(ValueError, match="`num_labels` must be at least 1. Received: num_labels=0"):
        TokenClassification(small_bert(), 0)
    with pytest.raises(ValueError, match=r"`rate`, the `dropout` .* in \[0, 1\). Received: 1.5"):
        TokenClassification(small_bert(), 2, dropout=1.5)


@pytest.mark.parametrize(
    "given, told",
    [
        ({"loss": "sparse_categorical_crossentropy"}, "`loss` must take logits"),
        ({"metrics": ["crossentropy"]}, "`metrics` must take logits"),
        ({"loss": SparseLoss(from_logits=True)}, "`loss` must leave out .* target is -1"),
        ({"loss": SparseLoss(ignore_class=0, from_logits=True)}, "`loss` must leave out .* is -1"),
        ({"metrics": ["acc"]}, "`metrics` must leave out .*TokenAccuracy.* Received: 'acc'"),
        ({"metrics": [TokenAccuracy(), "accuracy"]}, "`metrics` must .* Received: 'accuracy'"),
        (
            {"weighted_metrics": [keras.metrics.SparseCategoricalAccuracy()]},
            "`metrics` must leave out .* Received: <SparseCategoricalAccuracy",
        ),
    ],
)
def test_losses_and_metrics_that_count_every_token(given, told):
    with pytest.raises(ValueError, match=told):
        made_model().compile(**given)


def test_a_loss_of_keras_that_leaves_out_what_has_no_label():
    model = made_model()
    loss = SparseLoss(from_logits=True, ignore_class=-1)
    model.compile(loss=loss, metrics=[TokenAccuracy()], run_eagerly=True)
    found = model.evaluate(INPUTS, LABELS, verbose=0, return_dict=True)
    shares = np.where(COUNTS[..., None], np.eye(3)[LABELS], 0.0)
    assert found["loss"] == pytest.approx(losses_of_tokens(shares).sum() / 10, rel=1e-4)
