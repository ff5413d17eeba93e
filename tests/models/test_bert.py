"""Bert against the NumPy reference, under every mask and dtype policy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.models.bert import Bert
from tests.check_layer import check_layer
from tests.small_bert import (
    CONFIG,
    INPUTS,
    MASK,
    SEGMENTS,
    SHAPES,
    TOKENS,
    expected_outputs,
    small_bert,
)

BLOCK = {
    "attention/output/bias": (12,),
    "attention/output/kernel": (12, 12),
    "attention/qkv/bias": (36,),
    "attention/qkv/kernel": (12, 36),
    "attention_residual/layer_norm/beta": (12,),
    "attention_residual/layer_norm/gamma": (12,),
    "feed_forward/intermediate/bias": (20,),
    "feed_forward/intermediate/kernel": (12, 20),
    "feed_forward/output/bias": (12,),
    "feed_forward/output/kernel": (20, 12),
    "feed_forward_residual/layer_norm/beta": (12,),
    "feed_forward_residual/layer_norm/gamma": (12,),
}
# The contract: these paths are the names in kbert's own checkpoints.
PATHS = {
    "embeddings/layer_norm/beta": (12,),
    "embeddings/layer_norm/gamma": (12,),
    "embeddings/position_embedding/embeddings": (9, 12),
    "embeddings/segment_embedding/embeddings": (2, 12),
    "embeddings/token_embedding/embeddings": (23, 12),
    **{f"encoder_block_{i}/{path}": shape for i in range(2) for path, shape in BLOCK.items()},
    "pooler/bias": (12,),
    "pooler/kernel": (12, 12),
}
ONE_REAL = np.zeros((4, 6), bool)
ONE_REAL[:, 2] = True


def test_ritual():
    outputs = {"sequence_output": (4, 6, 12), "pooled_output": (4, 12)}
    # A graph for any batch leaves the states of padding 0: here there is none to compare.
    inputs = {**INPUTS, "padding_mask": np.ones((4, 6), bool)}
    check_layer(Bert, CONFIG, inputs, outputs, PATHS)


def test_variable_paths_and_shapes():
    model = small_bert()
    found = sorted((v.path, tuple(v.shape)) for v in model.weights)
    assert found == sorted((f"bert/{path}", shape) for path, shape in PATHS.items())
    assert PATHS == SHAPES  # the canonical names of checkpoints
    assert model.count_params() == sum(int(np.prod(shape)) for shape in PATHS.values())


@pytest.mark.parametrize("padding_mask", [None, MASK, ONE_REAL, np.zeros((4, 6), bool)])
@pytest.mark.parametrize("segment_ids", [None, SEGMENTS])
def test_numbers(padding_mask, segment_ids):
    model = small_bert()
    inputs = {"token_ids": TOKENS, "segment_ids": segment_ids, "padding_mask": padding_mask}
    inputs = {name: array for name, array in inputs.items() if array is not None}
    expected = expected_outputs(segment_ids=segment_ids, padding_mask=padding_mask)
    outputs = model(inputs)
    np.testing.assert_allclose(outputs["sequence_output"], expected.sequence_output, atol=2e-5)
    np.testing.assert_allclose(outputs["pooled_output"], expected.pooled_output, atol=2e-5)
    states = model.hidden_states(inputs)
    assert len(states) == 3
    for state, wanted in zip(states, expected.hidden_states, strict=True):
        np.testing.assert_allclose(state, wanted, atol=2e-5)
    scores = model.attention_scores(inputs)
    for score, wanted in zip(scores, expected.attention_probabilities, strict=True):
        assert score.shape == (4, 3, 6, 6)
        np.testing.assert_allclose(score, wanted, atol=2e-5)


def test_other_activation_and_epsilon():
    model = small_bert(activation="gelu_approximate", layer_norm_epsilon=0.01)
    expected = expected_outputs(
        segment_ids=SEGMENTS, padding_mask=MASK, activation="gelu_approximate", epsilon=0.01
    )
    sequence = model(INPUTS)["sequence_output"]
    np.testing.assert_allclose(sequence, expected.sequence_output, atol=2e-5)
    # Neither setting is without effect.
    plain = expected_outputs(segment_ids=SEGMENTS, padding_mask=MASK)
    assert np.abs(plain.sequence_output - expected.sequence_output).max() > 1e-3


def test_what_is_padding_does_not_matter():
    model = small_bert()
    changed = {**INPUTS, "token_ids": np.where(MASK, TOKENS, 7)}
    before, after = (np.asarray(model(x)["sequence_output"]) for x in (INPUTS, changed))
    np.testing.assert_allclose(after[MASK], before[MASK], atol=1e-6)


def test_rows_and_their_padding_are_independent():
    model = small_bert()
    alone = model({name: array[:1, :4] for name, array in INPUTS.items()})
    together = model(INPUTS)
    np.testing.assert_allclose(
        together["sequence_output"][:1, :4], alone["sequence_output"], atol=2e-6
    )
    np.testing.assert_allclose(together["pooled_output"][:1], alone["pooled_output"], atol=2e-6)


@pytest.mark.parametrize(
    "policy, tolerance",
    [("float32", 2e-5), ("bfloat16", 0.15), ("mixed_bfloat16", 0.15), ("mixed_float16", 0.02)],
)
@pytest.mark.parametrize("training", [False, True])
def test_no_nan_in_any_policy(policy, tolerance, training):
    model = small_bert(dtype=policy, dropout=0.0, attention_dropout=0.0)
    with tf.GradientTape() as tape:
        outputs = model(INPUTS, training=training)
        total = tf.add_n([tf.reduce_mean(tf.cast(x, "float32") ** 2) for x in outputs.values()])
    gradients = tape.gradient(total, [v.value for v in model.trainable_variables])
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        assert np.isfinite(tf.cast(tf.convert_to_tensor(gradient), "float32")).all(), variable.path
    expected = expected_outputs(segment_ids=SEGMENTS, padding_mask=MASK)
    sequence = tf.cast(outputs["sequence_output"], "float32")
    np.testing.assert_allclose(sequence, expected.sequence_output, atol=tolerance)
    pooled = tf.cast(outputs["pooled_output"], "float32")
    np.testing.assert_allclose(pooled, expected.pooled_output, atol=tolerance)
    assert all(np.isfinite(tf.cast(x, "float32")).all() for x in model.attention_scores(INPUTS))


def test_global_policy():
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = small_bert()
    assert model(INPUTS)["sequence_output"].dtype == "bfloat16"
    assert {v.dtype for v in model.weights} == {"float32"}


def test_new_weights_are_truncated_normal():
    # Devlin et al. 2018, A.2: deviation 0.02; google-research/bert truncates at two deviations,
    # and Keras draws from the normal before it truncates: 0.02 * 0.8796 by the variance of the
    # normal truncated at +-2 (1 - 4 phi(2) / (2 Phi(2) - 1)).
    model = Bert(1000, 64, 1, 4, 256)
    table = np.asarray(model.embeddings.token_embedding.embeddings)
    assert np.abs(table).max() <= 0.04 + 1e-7
    assert abs(table.std() - 0.02 * 0.8796) < 0.0002  # 64,000 numbers: standard error 0.00005
    for variable in model.weights:
        last = variable.path.split("/")[-1]
        if last in ("bias", "beta", "gamma"):
            assert (np.asarray(variable) == (last == "gamma")).all(), variable.path


def test_seed_decides_the_weights():
    def weights(seed):
        keras.utils.set_random_seed(seed)
        return Bert(**CONFIG).get_weights()

    first, again, other = weights(3), weights(3), weights(4)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert not (first[0] == other[0]).all()


@pytest.mark.parametrize(
    "changed, message",
    [
        (
            {"num_layers": -1},
            "`num_layers` must be a positive whole number. Received: num_layers=-1",
        ),
        (
            {"num_heads": 5},
            "`num_heads` must divide the hidden width. Received: num_heads=5, hidden width 12",
        ),
        ({"num_heads": 0}, "`num_heads` must be a positive whole .* Received: num_heads=0"),
        (
            {"activation": "swish2"},
            r"`activation` must be one of \[.*'gelu'.*\] or None. Received: activation='swish2'",
        ),
        ({"dropout": 1.0}, r"`dropout` must be a number in \[0, 1\). Received: dropout=1.0"),
        (
            {"vocabulary_size": 0},
            "`vocabulary_size` must be a positive whole number. Received: vocabulary_size=0",
        ),
        ({"intermediate_dim": 0}, "`intermediate_dim` must be a .*: intermediate_dim=0"),
    ],
)
def test_wrong_arguments(changed, message):
    with pytest.raises(ValueError, match=message):
        Bert(**{**CONFIG, **changed})


@pytest.mark.parametrize(
    "inputs, message",
    [
        (TOKENS, r"be a dict of `token_ids` int \(B, T\), .*Received: ndarray\(4, 6\)"),
        (["a text"], "`inputs` must be a dict of `token_ids`.* Received: list"),
        (
            {"input_ids": TOKENS, "attention_mask": MASK},
            r"Received: a dict of \['attention_mask', 'input_ids'\]; here input_ids is "
            "`token_ids`, attention_mask is `padding_mask`",
        ),
        ({"token_ids": TOKENS, "token_type_ids": SEGMENTS}, "token_type_ids is `segment_ids`"),
        ({"segment_ids": SEGMENTS}, r"Received: a dict of \['segment_ids'\]$"),
    ],
)
def test_inputs_without_their_names(inputs, message):
    model = small_bert()
    for method in (model, model.hidden_states, model.attention_scores):
        with pytest.raises(ValueError, match=message):
            method(inputs)


def test_too_long_a_sequence():
    with pytest.raises(ValueError, match="must not be longer than `max_sequence_length`=9. "):
        small_bert()({"token_ids": np.zeros((1, 10), "int32")})
