"""BERT with adapters against the NumPy reference: numbers, what trains, and how it is kept."""

import re

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.models.bert import AdapterBert, Bert
from kbert.models.weights import encoder_arrays, is_adapted
from kbert.optimization.adamw import AdamW
from kbert.tasks.question_answering.head import SpanExtraction
from tests import numpy_reference as reference
from tests.small_bert import ARRAYS, CONFIG, INPUTS, MASK, SEGMENTS, SHAPES, TOKENS, small_bert

M = 4
ADAPTER_SHAPES = reference.adapter_shapes(12, M, 2)
ADAPTERS = reference.random_arrays(ADAPTER_SHAPES, seed=11)


def adapter_bert(adapters=ADAPTERS, **kwargs):
    """The small BERT with these adapters, or new ones."""
    model = AdapterBert(**{**CONFIG, "adapter_dim": M, **kwargs})
    named = {variable.path.removeprefix("bert/"): variable for variable in model.weights}
    for name, array in {**ARRAYS, **(adapters or {})}.items():
        named[name].assign(array)
    return model


def expected_sequence(adapters):
    state = reference.bert_embeddings(TOKENS, SEGMENTS, ARRAYS)
    arrays = {**ARRAYS, **adapters}
    mask = reference.key_mask(MASK, 6)
    for i in range(2):
        state, _ = reference.adapter_encoder_block(state, arrays, f"encoder_block_{i}", 3, mask)
    return state


def test_numbers():
    outputs = adapter_bert()(INPUTS)
    expected = expected_sequence(ADAPTERS)
    np.testing.assert_allclose(outputs["sequence_output"], expected, atol=5e-5)
    dense = reference.dense(expected[:, 0], ARRAYS["pooler/kernel"], ARRAYS["pooler/bias"])
    np.testing.assert_allclose(outputs["pooled_output"], np.tanh(dense), atol=5e-5)


def test_variable_paths_and_shapes():
    found = {v.path: tuple(v.shape) for v in AdapterBert(**CONFIG, adapter_dim=M).weights}
    assert found == {f"bert/{path}": s for path, s in {**SHAPES, **ADAPTER_SHAPES}.items()}


def test_only_adapters_and_the_norms_of_the_blocks_train():
    model = AdapterBert(**CONFIG, adapter_dim=M)
    trained = {v.path.removeprefix("bert/") for v in model.trainable_variables}
    norms = {
        f"encoder_block_{i}/{residual}/layer_norm/{name}"
        for i in range(2)
        for residual in ("attention_residual", "feed_forward_residual")
        for name in ("gamma", "beta")
    }
    assert trained == set(ADAPTER_SHAPES) | norms
    # Frozen and let go again, as where a head learns first: what is frozen for good stays so.
    model.trainable = False
    assert not model.trainable and not model.trainable_variables
    model.trainable = True
    assert model.trainable
    assert {v.path.removeprefix("bert/") for v in model.trainable_variables} == trained
    assert is_adapted("bert/encoder_block_0/attention_residual/adapter/up/bias")
    assert is_adapted("bert/encoder_block_0/attention_residual/layer_norm/beta")
    assert not is_adapted("bert/embeddings/layer_norm/beta")
    assert not is_adapted("bert/encoder_block_0/attention/qkv/kernel")


@pytest.mark.parametrize("width, count", [(48, 1_789_056), (64, 2_379_264)])
def test_number_of_weights_of_bert_base(width, count):
    """2 L (2 D m + m + D) for 12 layers of width 768, by hand."""
    # One layer, and narrow where the adapters do not look.
    encoder = AdapterBert(5, 768, 1, 12, 1, 4, adapter_dim=width)
    plain = Bert(5, 768, 1, 12, 1, 4)
    assert 12 * (encoder.count_params() - plain.count_params()) == count


def test_training_moves_nothing_else():
    model = SpanExtraction(adapter_bert(dropout=0.0, attention_dropout=0.0))
    model.compile(AdamW(1e-2), run_eagerly=True)
    before = {v.path: np.asarray(v).copy() for v in model.weights}
    answers = np.array([[1, 2], [0, 0], [2, 2], [3, 5]])
    losses = model.fit(INPUTS, answers, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    moved = {v.path for v in model.weights if not np.array_equal(v, before[v.path])}
    assert moved == {v.path for v in model.trainable_variables}
    head = {path for path in moved if "span_head" in path}
    assert len(head) == 2 and all(is_adapted(path) for path in moved - head)


def test_configuration():
    model = adapter_bert(dropout=0.0)
    stored = keras.saving.serialize_keras_object(model)
    assert stored["registered_name"] == "kbert>AdapterBert"
    again = keras.saving.deserialize_keras_object(stored)
    assert again.get_config() == model.get_config() and again.adapter_dim == M
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again(INPUTS)["pooled_output"], model(INPUTS)["pooled_output"])
    assert len(again.trainable_variables) == len(model.trainable_variables) == 24
    assert AdapterBert(**CONFIG).adapter_dim == 64


def test_low_precision():
    outputs = adapter_bert(dtype="mixed_bfloat16")(INPUTS)
    assert outputs["sequence_output"].dtype == "bfloat16"
    found = keras.ops.cast(outputs["sequence_output"], "float32")
    np.testing.assert_allclose(found, expected_sequence(ADAPTERS), atol=0.2)


# --- checkpoints -----------------------------------------------------------------------------


def test_new_adapters_on_a_plain_checkpoint():
    plain = small_bert()
    model = AdapterBert.from_checkpoint(plain.to_checkpoint(), adapter_dim=3)
    assert model.adapter_dim == 3
    arrays = encoder_arrays(model)
    for name, array in encoder_arrays(plain).items():
        np.testing.assert_array_equal(arrays[name], array)
    # They start close to the identity.
    np.testing.assert_allclose(
        model(INPUTS)["sequence_output"], plain(INPUTS)["sequence_output"], atol=1e-3
    )


def test_a_folder_keeps_the_adapters(tmp_path):
    model = adapter_bert()
    folder = model.save_pretrained(tmp_path / "saved")
    again = AdapterBert.from_pretrained(folder)
    assert again.get_config() == model.get_config()
    for one, other in zip(again.weights, model.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    stored = load_file(folder / "model.safetensors")
    assert {n.removeprefix("adapters/") for n in stored if n.startswith("adapters/")} == set(
        ADAPTER_SHAPES
    )


def test_other_formats_know_no_adapters(tmp_path):
    for format in ("huggingface", "tf1"):
        message = '`format` must be "kbert" for an encoder with adapters. Received: format='
        with pytest.raises(ValueError, match=message + repr(format)):
            adapter_bert().save_pretrained(tmp_path / "saved", format=format)
    assert not list(tmp_path.iterdir())


def test_a_plain_encoder_has_no_place_for_adapters(tmp_path):
    checkpoint = adapter_bert().to_checkpoint()
    message = r"`arrays` must fit the model. Missing: none; left over: \['encoder_block_0/.*adapter"
    with pytest.raises(ValueError, match=message):
        Bert.from_checkpoint(checkpoint)


def test_adapters_that_do_not_fit():
    checkpoint = adapter_bert().to_checkpoint()
    removed = "encoder_block_1/attention_residual/adapter/up/bias"
    array = checkpoint.adapters.pop(removed)
    message = f"`checkpoint.adapters` must be all or none of the model's. Missing: ['{removed}']"
    with pytest.raises(ValueError, match=re.escape(message)):
        AdapterBert.from_checkpoint(checkpoint)
    checkpoint.adapters |= {removed: array, "encoder_block_9/x/adapter/up/bias": array}
    message = "Missing: none; left over: ['encoder_block_9/x/adapter/up/bias']"
    with pytest.raises(ValueError, match=re.escape(message)):
        AdapterBert.from_checkpoint(checkpoint)
    checkpoint = adapter_bert().to_checkpoint()
    checkpoint.adapters[removed] = checkpoint.adapters[removed][:3]
    with pytest.raises(ValueError, match=r"adapter/up/bias \(expected \(12,\), found \(3,\)\)"):
        AdapterBert.from_checkpoint(checkpoint)
