"""Bert from left to right: no position sees its future."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.models.bert import Bert
from tests.small_bert import CONFIG, INPUTS, MASK, SEGMENTS, TOKENS, expected_outputs, small_bert

PLAIN = {"dropout": 0.0, "attention_dropout": 0.0}


@pytest.mark.parametrize("padding_mask", [None, MASK])
def test_numbers(padding_mask):
    model = small_bert(causal=True)
    inputs = {"token_ids": TOKENS, "segment_ids": SEGMENTS, "padding_mask": padding_mask}
    inputs = {name: array for name, array in inputs.items() if array is not None}
    expected = expected_outputs(segment_ids=SEGMENTS, padding_mask=padding_mask, causal=True)
    outputs = model(inputs)
    np.testing.assert_allclose(outputs["sequence_output"], expected.sequence_output, atol=2e-5)
    np.testing.assert_allclose(outputs["pooled_output"], expected.pooled_output, atol=2e-5)
    np.testing.assert_allclose(model.hidden_states(inputs)[1], expected.hidden_states[1], atol=2e-5)
    for score, wanted in zip(
        model.attention_scores(inputs), expected.attention_probabilities, strict=True
    ):
        np.testing.assert_allclose(score, wanted, atol=2e-5)
        assert not np.triu(np.asarray(score), 1).any()


def gradients_by_position(model, position):
    """How much the embedded tokens of each position (T,) change the state at one position."""
    states = tf.convert_to_tensor(model.embeddings(TOKENS, SEGMENTS))
    mask = model._mask(INPUTS)
    with tf.GradientTape() as tape:
        tape.watch(states)
        hidden = states
        for block in model.blocks:
            hidden = block(hidden, mask)
        # A LayerNorm lets the sum of a state always be the same: its squares are not.
        loss = tf.reduce_sum(tf.math.cumsum(hidden[:2, position], axis=-1) ** 2)
    return np.abs(tape.gradient(loss, states)).max(axis=(0, 2))


@pytest.mark.parametrize("position", range(6))
def test_no_position_sees_its_future(position):
    found = gradients_by_position(small_bert(causal=True, **PLAIN), position)
    assert (found[: position + 1] > 1e-4).all()
    assert not found[position + 1 :].any()  # zero, not small
    # The test can fail: where all see all, the future has gradients.
    assert (gradients_by_position(small_bert(**PLAIN), position) > 1e-4).all()


@pytest.mark.parametrize("training", [False, True])
def test_later_tokens_change_nothing(training):
    model = small_bert(causal=True, gradient_checkpointing=training, **PLAIN)
    before = np.asarray(model(INPUTS, training=training)["sequence_output"])
    for length in range(1, 6):
        changed = {**INPUTS, "token_ids": np.where(np.arange(6) < length, TOKENS, 22 - TOKENS)}
        after = np.asarray(model(changed, training=training)["sequence_output"])
        np.testing.assert_allclose(after[:, :length], before[:, :length], atol=1e-6)
        assert np.abs(after[1, length:] - before[1, length:]).max() > 0.01


def test_the_pooler_reads_the_last_real_token():
    model = small_bert(causal=True)
    outputs = model(INPUTS)
    states = np.asarray(outputs["sequence_output"])
    last = states[np.arange(4), [3, 5, 5, 0]]  # the last row is all padding
    np.testing.assert_allclose(outputs["pooled_output"], model.pooler(last), atol=1e-6)


def test_it_stays_so_in_files(tmp_path):
    model = Bert(**CONFIG, causal=True)
    assert type(model).from_config(model.get_config()).causal
    again = Bert.from_pretrained(model.save_pretrained(tmp_path / "saved"))
    assert again.causal
    np.testing.assert_array_equal(again(INPUTS)["pooled_output"], model(INPUTS)["pooled_output"])
    assert not Bert(**CONFIG).causal and "causal" not in Bert(**CONFIG).to_checkpoint().config


def test_hugging_faces_format(tmp_path):
    model = small_bert(causal=True)
    folder = model.save_pretrained(tmp_path / "saved", format="huggingface")
    again = Bert.from_pretrained(folder)
    assert again.causal
    np.testing.assert_array_equal(again(INPUTS)["pooled_output"], model(INPUTS)["pooled_output"])
    with pytest.raises(ValueError, match="`causal` must be False in Google's format. Received: c"):
        model.save_pretrained(tmp_path / "google", format="tf1")
