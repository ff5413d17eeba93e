"""Start and end vectors over an encoder, against the NumPy reference."""

import warnings

import keras
import numpy as np
import pytest

from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.optimization.sequence_losses import SpanCrossEntropy
from kbert.tasks.question_answering.head import SpanExtraction
from tests import numpy_reference as reference
from tests.models.test_distilbert import small_distilbert
from tests.small_bert import INPUTS, MASK, SEGMENTS, TOKENS, expected_outputs, small_bert
from tests.tasks.check_task import (
    POOLER,
    check_gradients,
    check_trains_on,
    check_variables,
    saved_and_loaded,
    untrained,
)

HEAD = {"kernel": (12, 2), "bias": (2,)}
ARRAYS = reference.random_arrays(HEAD, seed=9)
# Tokens of the first three rows; the fourth is all padding.
ANSWERS = np.array([[[1, 3], [2, 3]], [[0, 0], [-1, -1]], [[2, 5], [-1, -1]], [[0, 0], [-1, -1]]])


def made_model(**kwargs):
    dtype = {"dtype": kwargs["dtype"]} if "dtype" in kwargs else {}
    encoder = small_bert(dropout=0.0, attention_dropout=0.0, **dtype)
    model = SpanExtraction(encoder, name="model", **kwargs)
    for name, array in ARRAYS.items():
        getattr(model.span_head, name).assign(array)
    return model


def expected_logits(mask=MASK):
    states = expected_outputs(segment_ids=SEGMENTS, padding_mask=mask).sequence_output
    logits = reference.dense(states, ARRAYS["kernel"], ARRAYS["bias"])
    return logits if mask is None else np.where(mask[..., None], logits, -1e9)


def expected_loss(answers=ANSWERS):
    """-log p(start) - log p(end), each summed over the given ones; mean over the rows."""
    logits, total = expected_logits(), 0.0
    for row, of_row in enumerate(answers):
        for side in range(2):
            p = reference.softmax(logits[row, :, side])
            total -= np.log(p[sorted({int(a[side]) for a in of_row if a[side] >= 0})].sum())
    return total / len(answers)


def test_numbers():
    logits = made_model()(INPUTS)
    assert logits.shape == (4, 6, 2) and logits.dtype == "float32"
    np.testing.assert_allclose(logits, expected_logits(), atol=5e-5, rtol=1e-6)


def test_without_segments_and_padding():
    expected = reference.dense(
        expected_outputs().sequence_output, ARRAYS["kernel"], ARRAYS["bias"]
    )
    np.testing.assert_allclose(made_model()({"token_ids": TOKENS}), expected, atol=5e-5)


def test_padding_is_never_an_answer():
    model = made_model()
    longer = {name: np.pad(array, [(0, 0), (0, 3)]) for name, array in INPUTS.items()}
    found = np.asarray(model(longer))
    assert (found[:, 6:] == -1e9).all() and (found[:, :6][~MASK] == -1e9).all()
    np.testing.assert_allclose(found[:, :6], model(INPUTS), atol=2e-5, rtol=1e-6)


@pytest.mark.parametrize("policy", ["bfloat16", "mixed_bfloat16", "mixed_float16"])
def test_logits_are_float32_in_every_policy(policy):
    model = made_model(dtype=policy)
    logits = model(INPUTS)
    assert logits.dtype == "float32" and model.span_head.kernel.dtype == "float32"
    np.testing.assert_allclose(logits, expected_logits(), atol=0.4, rtol=1e-6)
    check_gradients(model, ANSWERS)


def test_variable_paths_and_shapes():
    model = made_model()
    check_variables(model, {f"span_head/{path}": shape for path, shape in HEAD.items()})
    assert untrained(model) == POOLER
    assert model.head_layers() == {"qa_outputs": model.span_head}


def test_compile_without_arguments():
    model = made_model()
    model.compile(run_eagerly=True)
    assert isinstance(model.optimizer, AdamW) and isinstance(model.loss, SpanCrossEntropy)
    found = model.evaluate(INPUTS, ANSWERS, verbose=0, return_dict=True)
    assert found["loss"] == pytest.approx(expected_loss(), rel=1e-4)
    best = expected_logits().argmax(axis=1)
    right = [
        all(any(a[side] == best[row, side] for a in of_row) for side in range(2))
        for row, of_row in enumerate(ANSWERS)
    ]
    assert found["span_accuracy"] == pytest.approx(np.mean(right))


def test_fit_is_the_reference_step():
    """One step of plain gradient descent on the bias, whose gradient is known: p - share."""
    model = made_model()
    model.compile(keras.optimizers.SGD(0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Keras warns of variables without gradients
        history = model.fit(INPUTS, ANSWERS, batch_size=4, shuffle=False, verbose=0).history
    assert history["loss"][0] == pytest.approx(expected_loss(), rel=1e-4)
    logits, gradient = expected_logits(), np.zeros(2)
    for row, of_row in enumerate(ANSWERS):
        for side in range(2):
            p = reference.softmax(logits[row, :, side])
            right = sorted({int(a[side]) for a in of_row if a[side] >= 0})
            share = np.zeros(6)
            share[right] = p[right] / p[right].sum()
            gradient[side] += ((p - share) * MASK[row]).sum() / 4  # padding is no logit
    after = ARRAYS["bias"] - 0.5 * gradient
    np.testing.assert_allclose(model.span_head.bias, after, rtol=1e-4, atol=1e-6)


def test_saved_and_loaded_it_trains_on(tmp_path):
    model = made_model()
    model.compile(AdamW(WarmupLinearDecay(1e-2, 10, 2)), run_eagerly=True)
    model.fit(INPUTS, ANSWERS, epochs=2, verbose=0)
    check_trains_on([model, saved_and_loaded(model, tmp_path)], ANSWERS, epochs=2)


def test_clone():
    model = made_model()
    stored = keras.saving.serialize_keras_object(model)
    assert stored["registered_name"] == "kbert>SpanExtraction"
    copy = SpanExtraction.from_config(model.get_config())
    assert copy.encoder is not model.encoder and copy.get_config() == model.get_config()
    copy.set_weights(model.get_weights())
    np.testing.assert_array_equal(copy(INPUTS), model(INPUTS))


def test_an_encoder_may_ask_for_dropout_before_the_head():
    encoder = small_distilbert(dropout=0.0, attention_dropout=0.0, span_dropout=0.5)
    model = SpanExtraction(encoder)
    assert SpanExtraction(small_bert()).dropout_layer is None
    inputs = {key: INPUTS[key] for key in ("token_ids", "segment_ids")}
    plain, again, dropped = (np.asarray(model(inputs, training=t)) for t in (False, False, True))
    np.testing.assert_array_equal(plain, again)
    assert np.abs(plain - dropped).max() > 1e-4
