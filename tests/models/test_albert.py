"""Albert against the NumPy reference, its shared blocks, and its ways through files."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.models.albert import Albert
from kbert.models.bert import Bert
from kbert.models.encoder import Encoder
from kbert.models.weights import assign_arrays, encoder_arrays
from tests import numpy_reference as reference
from tests.check_layer import check_layer
from tests.checkpoints.synthetic_albert import albert_tensors, write_albert
from tests.checkpoints.synthetic_bert import hf_tensors, write_hf
from tests.models.test_bert import BLOCK
from tests.small_bert import CONFIG as OF_BERT
from tests.small_bert import INPUTS, MASK, SEGMENTS, TOKENS

CONFIG = {**OF_BERT, "num_layers": 3, "embedding_dim": 5, "num_groups": 2}
# The contract: these paths are the names in kbert's own checkpoints.
PATHS = {
    "embeddings/layer_norm/beta": (5,),
    "embeddings/layer_norm/gamma": (5,),
    "embeddings/position_embedding/embeddings": (9, 5),
    "embeddings/segment_embedding/embeddings": (2, 5),
    "embeddings/token_embedding/embeddings": (23, 5),
    "embedding_projection/bias": (12,),
    "embedding_projection/kernel": (5, 12),
    **{f"encoder_block_{i}/{path}": shape for i in range(2) for path, shape in BLOCK.items()},
    "pooler/bias": (12,),
    "pooler/kernel": (12, 12),
}
ARRAYS = reference.random_arrays(PATHS, seed=5)
# The first group has two of three layers.
OF_LAYERS = [0, 0, 1]


def small_albert(**kwargs: Any) -> Albert:
    model = Albert(**{**CONFIG, **kwargs})
    assign_arrays(model, {name: ARRAYS[name] for name in encoder_arrays(model)})
    return model


def expected() -> reference.BertOutputs:
    return reference.albert(ARRAYS, TOKENS, OF_LAYERS, 3, SEGMENTS, MASK)


def test_ritual():
    outputs = {"sequence_output": (4, 6, 12), "pooled_output": (4, 12)}
    inputs = {**INPUTS, "padding_mask": np.ones((4, 6), bool)}
    check_layer(Albert, CONFIG, inputs, outputs, PATHS)


def test_variable_paths_and_the_protocol():
    model = small_albert()
    found = {v.path: tuple(v.shape) for v in model.weights}
    assert found == {f"albert/{path}": shape for path, shape in PATHS.items()}
    assert isinstance(model, Encoder)


def test_numbers():
    model, wanted = small_albert(), expected()
    outputs = model(INPUTS)
    np.testing.assert_allclose(outputs["sequence_output"], wanted.sequence_output, atol=2e-5)
    np.testing.assert_allclose(outputs["pooled_output"], wanted.pooled_output, atol=2e-5)
    for state, other in zip(model.hidden_states(INPUTS), wanted.hidden_states, strict=True):
        np.testing.assert_allclose(state, other, atol=2e-5)
    scores = model.attention_scores(INPUTS)
    for score, other in zip(scores, wanted.attention_probabilities, strict=True):
        np.testing.assert_allclose(score, other, atol=2e-5)


def test_real_tokens_alone_in_a_graph_of_any_shape():
    model = small_albert()
    specs = {name: tf.TensorSpec((None, None), array.dtype) for name, array in INPUTS.items()}
    graph = tf.function(model, input_signature=[specs])
    found = graph({name: tf.constant(array) for name, array in INPUTS.items()})
    wanted = expected()
    np.testing.assert_allclose(
        found["sequence_output"][MASK], wanted.sequence_output[MASK], atol=2e-5
    )
    # The last row is all padding.
    np.testing.assert_allclose(found["pooled_output"][:3], wanted.pooled_output[:3], atol=2e-5)


def test_a_bert_of_equal_blocks_is_an_albert():
    """With one group, and a projection that changes nothing."""
    model = Albert(**{**OF_BERT, "embedding_dim": 12, "activation": "gelu"})
    draw = reference.random_arrays({n: a.shape for n, a in encoder_arrays(model).items()}, 3)
    ones = {"embedding_projection/kernel": np.eye(12), "embedding_projection/bias": np.zeros(12)}
    assign_arrays(model, {**draw, **ones})
    bert = Bert(**OF_BERT)
    own = {name: array for name, array in draw.items() if name not in ones}
    copied = {name.replace("block_0", "block_1"): array for name, array in own.items()}
    assign_arrays(bert, {**own, **copied})
    for one, other in zip(model.hidden_states(INPUTS), bert.hidden_states(INPUTS), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize(
    "layers, groups, expected",
    [
        (12, 1, [0] * 12),
        (4, 2, [0, 0, 1, 1]),
        (3, 3, [0, 1, 2]),
        (5, 2, [0, 0, 0, 1, 1]),
    ],
)
def test_the_groups_of_layers(layers: int, groups: int, expected: list[int]):
    """transformers: int(layer / (layers / groups))."""
    model = Albert(**{**CONFIG, "num_layers": layers, "num_groups": groups})
    assert [model.blocks.index(block) for block in model.layer_blocks] == expected


@pytest.mark.parametrize("groups", [0, 4])
def test_too_few_and_too_many_groups(groups: int):
    message = f"between 1 and `num_layers`. Received: num_groups={groups}, num_layers=3"
    with pytest.raises(ValueError, match=message):
        Albert(**{**CONFIG, "num_groups": groups})


def test_gradients_of_a_shared_block_are_the_sum_over_its_layers():
    """By a difference quotient, and the same where layers are recomputed."""
    found = []
    for recompute in (False, True):
        model = small_albert(gradient_checkpointing=recompute, dtype="float64")
        bias = model.blocks[0].feed_forward.output_linear.bias
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(INPUTS, training=True)["pooled_output"] ** 2)
        found.append(tape.gradient(loss, bias.value).numpy())
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
    step = np.zeros(12)
    step[3] = 1e-6
    sides = []
    for sign in (1, -1):
        model = small_albert(dtype="float64")
        model.blocks[0].feed_forward.output_linear.bias.assign_add(sign * step)
        sides.append(float(tf.reduce_sum(model(INPUTS)["pooled_output"] ** 2)))
    assert found[0][3] == pytest.approx((sides[0] - sides[1]) / 2e-6, abs=1e-5)


def test_a_keras_file(tmp_path):
    model = small_albert()
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert type(again) is Albert and again.get_config() == model.get_config()
    np.testing.assert_array_equal(again(INPUTS)["pooled_output"], model(INPUTS)["pooled_output"])


@pytest.mark.parametrize("format", ["kbert", "huggingface"])
def test_folders(tmp_path, format: str):
    model = small_albert()
    again = Albert.from_pretrained(model.save_pretrained(tmp_path / "saved", format=format))
    assert again.get_config() == model.get_config()
    np.testing.assert_array_equal(again(INPUTS)["pooled_output"], model(INPUTS)["pooled_output"])


def test_the_folder_of_another_architecture(tmp_path):
    albert = write_albert(tmp_path / "albert", albert_tensors())
    bert = write_hf(tmp_path / "bert", hf_tensors())
    with pytest.raises(ValueError, match="architecture bert, as Bert is. Received: .*='albert'"):
        Bert.from_pretrained(albert)
    with pytest.raises(ValueError, match="architecture albert, as Albert is. Rec.*='bert'"):
        Albert.from_pretrained(bert)
    with pytest.raises(ValueError, match="must be of a BERT encoder"):
        Albert.from_pretrained(albert).save_pretrained(tmp_path / "tf1", format="tf1")
