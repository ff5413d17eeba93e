"""What every encoder of Transformer blocks does alike, in calls that take the small model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.models.encoder import Encoder, encoder_of
from kbert.models.weights import ADAPTER
from tests import numpy_reference as reference
from tests.small_bert import INPUTS, MASK

Make = Callable[..., Any]


def check_numbers(model: Any, wanted: reference.BertOutputs) -> None:
    """Outputs, hidden states and attention scores of `INPUTS`, and real tokens in a graph."""
    assert isinstance(model, Encoder)
    outputs = model(INPUTS)
    np.testing.assert_allclose(outputs["sequence_output"], wanted.sequence_output, atol=2e-5)
    assert ("pooled_output" in outputs) == (model.pooler is not None)
    for state, other in zip(model.hidden_states(INPUTS), wanted.hidden_states, strict=True):
        np.testing.assert_allclose(state, other, atol=2e-5)
    scores = model.attention_scores(INPUTS)
    for score, other in zip(scores, wanted.attention_probabilities, strict=True):
        np.testing.assert_allclose(score, other, atol=2e-5)
    specs = {name: tf.TensorSpec((None, None), array.dtype) for name, array in INPUTS.items()}
    graph = tf.function(model, input_signature=[specs])
    found = graph({name: tf.constant(array) for name, array in INPUTS.items()})
    np.testing.assert_allclose(
        found["sequence_output"][MASK], wanted.sequence_output[MASK], atol=2e-5
    )
    if model.pooler is not None:
        np.testing.assert_allclose(outputs["pooled_output"], wanted.pooled_output, atol=2e-5)
        # The last row is all padding.
        np.testing.assert_allclose(found["pooled_output"][:3], wanted.pooled_output[:3], atol=2e-5)


def check_recomputed_blocks(make: Make) -> None:
    """Gradients are the same where blocks are recomputed."""
    found = []
    for recompute in (False, True):
        model = make(gradient_checkpointing=recompute, dropout=0.0, attention_dropout=0.0)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(INPUTS, training=True)["sequence_output"] ** 3)
        table = model.embeddings.token_embedding.embeddings.value
        found.append(tf.convert_to_tensor(tape.gradient(loss, table)).numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-4)


def check_files(make: Make, folder: Path) -> None:
    """A file of Keras, and folders of kbert and of Hugging Face, give the model back."""
    model = make()
    wanted = np.asarray(model(INPUTS)["sequence_output"])
    model.save(folder / "model.keras")
    again = keras.models.load_model(folder / "model.keras")
    assert type(again) is type(model) and again.get_config() == model.get_config()
    np.testing.assert_array_equal(again(INPUTS)["sequence_output"], wanted)
    for format in ("kbert", "huggingface"):
        path = model.save_pretrained(folder / format, format=format)
        again = type(model).from_pretrained(path)
        assert again.get_config() == model.get_config()
        np.testing.assert_array_equal(again(INPUTS)["sequence_output"], wanted)


def check_adapters(make: Make, kind: str, folder: Path) -> None:
    """An adapter alone trains, and a folder keeps it."""
    plain = make()
    model = encoder_of(plain.to_checkpoint(), adapter=kind)
    trained = [v for v in model.trainable_variables if "/pooler/" not in v.path]
    assert trained and all(f"/{ADAPTER}task/" in v.path for v in trained)
    before = np.asarray(model(INPUTS)["sequence_output"])
    for variable in trained:
        variable.assign_add(np.full(variable.shape, 0.1, "float32"))
    after = np.asarray(model(INPUTS)["sequence_output"])
    assert np.abs(after - before)[MASK].max() > 1e-3
    again = encoder_of(read_checkpoint(model.save_pretrained(folder / kind)))
    assert type(again) is type(plain) and again.get_config() == model.get_config()
    np.testing.assert_array_equal(again(INPUTS)["sequence_output"], after)
    other = encoder_of(model.to_checkpoint(), adapter="lora")  # a new one in its place
    np.testing.assert_allclose(
        np.asarray(other(INPUTS)["sequence_output"])[MASK],
        np.asarray(plain(INPUTS)["sequence_output"])[MASK],
        atol=1e-6,
    )


def check_cannot_be_causal(make: Make) -> None:
    """It is refused by name."""
    checkpoint = make().to_checkpoint()
    name = type(make()).__name__
    with pytest.raises(ValueError, match=f"`causal` must be False for a {name}. Received: causal"):
        encoder_of(checkpoint, causal=True)
    assert encoder_of(checkpoint, causal=False).causal is False
