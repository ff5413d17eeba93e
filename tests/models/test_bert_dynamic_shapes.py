"""Bert in graphs whose batches may have any shape: real tokens alone are computed."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.small_bert import INPUTS, MASK, SEGMENTS, expected_outputs, small_bert

DOUBLE = "float64"
PLAIN = {"dropout": 0.0, "attention_dropout": 0.0}
FULL = np.ones((4, 6), bool)
BLANK = np.zeros((4, 6), bool)
ANY_SHAPE = {"token_ids": tf.int32, "segment_ids": tf.int32, "padding_mask": tf.bool}


def graph(function, **options):
    """A graph for dicts of (B, T)."""
    spec = {name: tf.TensorSpec((None, None), dtype) for name, dtype in ANY_SHAPE.items()}
    return tf.function(function, input_signature=[spec], autograph=False, **options)


def with_gradients(model, training):
    """Outputs at real positions, and the gradients of a loss of them."""

    def function(inputs):
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=training)
            real = tf.cast(inputs["padding_mask"], tf.float64)[..., None]
            states = tf.cast(outputs["sequence_output"], tf.float64) * real
            pooled = tf.cast(outputs["pooled_output"], tf.float64)
            loss = tf.reduce_sum(tf.sin(3 * states)) + tf.reduce_sum(tf.sin(2 * pooled))
        gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
        return states, pooled, [tf.convert_to_tensor(gradient) for gradient in gradients]

    return function


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_numbers(training, causal):
    model = small_bert(causal=causal, **PLAIN)
    run = graph(lambda x: model(x, training=training))
    for mask in (MASK, FULL, BLANK):
        outputs = run({**INPUTS, "padding_mask": mask})
        expected = expected_outputs(segment_ids=SEGMENTS, padding_mask=mask, causal=causal)
        sequence = np.asarray(outputs["sequence_output"])
        np.testing.assert_allclose(sequence[mask], expected.sequence_output[mask], atol=2e-5)
        rows = mask.any(axis=1)
        pooled = np.asarray(outputs["pooled_output"])
        np.testing.assert_allclose(pooled[rows], expected.pooled_output[rows], atol=2e-5)
        assert np.isfinite(pooled).all()
        kept = mask | (np.arange(6) == 0)  # a row without a token keeps its first cell
        assert not sequence[~kept].any()


def adapted(**kwargs):
    """A fusion of two adapters."""
    model = small_bert(**kwargs)
    for name in ("one", "two"):
        model.add_adapter(name, "pfeiffer")
    model.add_adapter_fusion(["one", "two"])
    model.set_active_adapters(["one", "two"])
    return model


@pytest.mark.parametrize("model", ["plain", "causal", "adapters", "checkpointing"])
@pytest.mark.parametrize(
    "training", [pytest.param(False, marks=pytest.mark.slow), True]
)
def test_fixed_and_dynamic_shapes_have_the_same_outputs_and_gradients(model, training):
    made = {
        "plain": lambda: small_bert(dtype=DOUBLE, **PLAIN),
        "causal": lambda: small_bert(causal=True, dtype=DOUBLE, **PLAIN),
        "adapters": lambda: adapted(dtype=DOUBLE, **PLAIN),
        "checkpointing": lambda: small_bert(gradient_checkpointing=True, dtype=DOUBLE, **PLAIN),
    }[model]()
    function = with_gradients(made, training)
    dynamic = graph(function)
    for rows in (4, 3, 1):  # fewer rows than groups too
        batch = {name: array[:rows] for name, array in INPUTS.items()}
        here, there = tf.nest.flatten(function(batch)), tf.nest.flatten(dynamic(batch))
        for one, other in zip(here, there, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.parametrize("causal, training", [(False, True), (True, False)])
def test_a_batch_without_rows(causal, training):
    model = small_bert(causal=causal)
    outputs = graph(lambda x: model(x, training=training))({n: a[:0] for n, a in INPUTS.items()})
    assert outputs["sequence_output"].shape == (0, 6, 12)
    assert outputs["pooled_output"].shape == (0, 12)


@pytest.mark.parametrize(
    "policy, tolerance",
    [("mixed_bfloat16", 0.15), pytest.param("mixed_float16", 0.02, marks=pytest.mark.slow)],
)
def test_other_policies(policy, tolerance):
    model = small_bert(dtype=policy, **PLAIN)
    states, _, gradients = graph(with_gradients(model, True))(INPUTS)
    expected = expected_outputs(segment_ids=SEGMENTS, padding_mask=MASK)
    wanted = expected.sequence_output[MASK]
    np.testing.assert_allclose(np.asarray(states)[MASK], wanted, atol=tolerance)
    assert all(np.isfinite(tf.cast(gradient, "float32")).all() for gradient in gradients)


@pytest.mark.slow
def test_dropout_differs_between_groups():
    """Rows that are alike fall into all groups; each must lose other probabilities."""
    alike = {name: np.repeat(array[1:2], 8, axis=0) for name, array in INPUTS.items()}
    model = small_bert(dropout=0.0, attention_dropout=0.5, gradient_checkpointing=True)
    states = np.asarray(graph(with_gradients(model, True))(alike)[0])
    assert len(np.unique(states[:, 0, 0])) == 8
    assert len(np.unique(np.asarray(graph(with_gradients(model, False))(alike)[0])[:, 0, 0])) == 1


@pytest.mark.slow
def test_checkpointing_drops_the_same_again():
    found = []
    for checkpointing in (False, True):
        keras.utils.set_random_seed(11)
        model = small_bert(
            dropout=0.3, attention_dropout=0.2, gradient_checkpointing=checkpointing, dtype=DOUBLE
        )
        found.append(tf.nest.flatten(graph(with_gradients(model, True))(INPUTS)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_xla_takes_it():
    model = small_bert(**PLAIN)
    expected = expected_outputs(segment_ids=SEGMENTS, padding_mask=MASK)
    outputs = graph(lambda x: model(x, training=True), jit_compile=True)(INPUTS)
    sequence = np.asarray(outputs["sequence_output"])
    np.testing.assert_allclose(sequence[MASK], expected.sequence_output[MASK], atol=2e-5)


def test_fixed_shapes_stay_fixed():
    """What XLA and TPUs need: no operation whose result has as many rows as there are tokens."""
    model = small_bert()
    fixed = tf.function(model).get_concrete_function(
        {name: tf.TensorSpec((4, 6), dtype) for name, dtype in ANY_SHAPE.items()}
    )
    kinds = {operation.type for operation in fixed.graph.get_operations()}
    assert "Where" not in kinds and "MatMul" in kinds
    dynamic = graph(model).get_concrete_function().graph.get_operations()
    assert "Where" in {operation.type for operation in dynamic}
