"""The published all-MiniLM-L6-v2, against what transformers computes, and in every format."""

import gc
from pathlib import Path

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.models.bert import Bert
from tests.small_bert import DEFAULTS

HIDDEN_STATES = 7  # the embeddings and six blocks


@pytest.fixture(scope="module")
def golden(shared_data: Path) -> dict[str, np.ndarray]:
    """Outputs of transformers 5.23.0 on PyTorch 2.13.0 in float32, of three padded sequences."""
    file = shared_data / "golden" / "minilm_l6_hf_forward.npz"
    if not file.is_file():
        pytest.skip(f"No {file}")
    with np.load(file) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def inputs() -> dict[str, np.ndarray]:
    """Two rows of ids of the vocabulary's words, one of them padded, in two segments."""
    draw = np.random.default_rng(0)
    mask = np.arange(24) < np.array([[24], [15]])
    token_ids = np.where(mask, draw.integers(1000, 29000, (2, 24)), 0)
    segment_ids = np.where(mask, np.arange(24) >= 10, 0)
    return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": mask}


@pytest.fixture(scope="module")
def model(minilm_directory: Path):
    yield Bert.from_pretrained(minilm_directory)
    gc.collect()


def test_configuration(model):
    # From its config.json.
    config = model.get_config()
    expected = {
        "vocabulary_size": 30522,
        "hidden_dim": 384,
        "num_layers": 6,
        "num_heads": 12,
        "intermediate_dim": 1536,
        "max_sequence_length": 512,
        **DEFAULTS,
        "gradient_checkpointing": False,
    }
    assert {key: config[key] for key in expected} == expected
    assert model.count_params() == 22_713_216  # as the model's page says: 22.7 million


def test_transformers_numbers(model, golden):
    mask = golden["attention_mask"].astype(bool)
    inputs = {
        "token_ids": golden["input_ids"],
        "segment_ids": golden["token_type_ids"],
        "padding_mask": mask,
    }
    states = model.hidden_states(inputs)
    assert len(states) == HIDDEN_STATES
    for i, state in enumerate(states):
        expected = golden[f"hidden_{i}"][mask]
        np.testing.assert_allclose(np.asarray(state)[mask], expected, rtol=0, atol=2e-5)
    outputs = model(inputs)
    np.testing.assert_array_equal(outputs["sequence_output"], states[-1])
    pooled = np.asarray(outputs["pooled_output"])
    np.testing.assert_allclose(pooled, golden["pooler_output"], rtol=0, atol=2e-5)
    # Queries and keys of the first block; rows of padding are of no interest.
    first = np.moveaxis(np.asarray(model.attention_scores(inputs)[0]), 1, 3)[mask]
    expected = np.moveaxis(golden["attention_0"], 1, 3)[mask]
    np.testing.assert_allclose(first, expected, rtol=0, atol=2e-5)


def same_outputs(one, other, inputs, atol):
    expected = one(inputs)
    outputs = other(inputs)
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(outputs[name], expected[name], rtol=0, atol=atol)


def test_through_the_hugging_face_format_byte_for_byte(model, minilm_directory, tmp_path):
    folder = model.save_pretrained(
        tmp_path / "hf", format="huggingface", vocabulary=minilm_directory / "vocab.txt"
    )
    before, after = (load_file(f / "model.safetensors") for f in (minilm_directory, folder))
    before.pop("embeddings.position_ids", None)  # a buffer of older versions: 0, 1, 2, ...
    assert before.keys() == after.keys()
    for name, array in before.items():
        assert array.dtype == after[name].dtype and array.tobytes() == after[name].tobytes(), name
    vocabularies = [(f / "vocab.txt").read_bytes() for f in (minilm_directory, folder)]
    assert vocabularies[0] == vocabularies[1]


def test_through_the_tf1_format(model, inputs, tmp_path):
    folder = model.save_pretrained(tmp_path / "tf1", format="tf1")
    assert folder == tmp_path / "tf1"
    again = Bert.from_pretrained(folder)
    same_outputs(model, again, inputs, 1e-5)
    assert again.get_config() == model.get_config()
    same_outputs(model, Bert.from_pretrained(folder / "bert_model.ckpt"), inputs, 1e-5)


@pytest.mark.parity
def test_through_the_model_garden_format(model, inputs, tmp_path):
    """Its own encoder gets the weights, computes the same numbers, and writes its checkpoint."""
    tf = pytest.importorskip("tensorflow")
    pytest.importorskip("official.nlp", reason="needs tf-models-official")
    from official.modeling import tf_utils
    from official.nlp.modeling import networks

    encoder = networks.BertEncoderV2(
        vocab_size=30522,
        hidden_size=384,
        num_layers=6,
        num_attention_heads=12,
        max_sequence_length=512,
        type_vocab_size=2,
        inner_dim=1536,
        inner_activation=tf_utils.get_activation("gelu"),
    )
    encoder(encoder.inputs)
    assign_to_model_garden(encoder, model)
    given = {
        "input_word_ids": inputs["token_ids"],
        "input_mask": inputs["padding_mask"],
        "input_type_ids": inputs["segment_ids"],
    }
    theirs = encoder({name: tf.constant(x, tf.int32) for name, x in given.items()})
    # Model Garden's gelu is the tanh form.
    approximate = Bert.from_checkpoint(model.to_checkpoint(), activation="gelu_approximate")
    mask, ours = inputs["padding_mask"], approximate(inputs)
    for name in ("sequence_output", "pooled_output"):
        rows = mask if name == "sequence_output" else ...
        one, other = np.asarray(ours[name])[rows], np.asarray(theirs[name])[rows]
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-5)
    prefix = tf.train.Checkpoint(encoder=encoder).save(str(tmp_path / "ckpt"))
    del encoder, theirs
    (tmp_path / "params.yaml").write_text(
        "encoder: {vocab_size: 30522, hidden_size: 384, num_layers: 6, num_attention_heads: 12,"
        " intermediate_size: 1536, max_position_embeddings: 512, type_vocab_size: 2,"
        " hidden_activation: gelu}"
    )
    read = Bert.from_pretrained(prefix)
    assert read.activation == "gelu_approximate"
    same_outputs(approximate, read, inputs, 1e-5)
    same_outputs(model, Bert.from_pretrained(prefix, activation="gelu"), inputs, 1e-5)


def assign_to_model_garden(encoder, model):
    """Weight for weight, in the names and shapes of `official.nlp.modeling`."""
    arrays = model.to_checkpoint().arrays
    targets = {
        v.name.removesuffix(":0").removeprefix(f"{encoder.name}/"): v for v in encoder.variables
    }
    names = {
        "word_embeddings/embeddings": "embeddings/token_embedding/embeddings",
        "position_embedding/embeddings": "embeddings/position_embedding/embeddings",
        "type_embeddings/embeddings": "embeddings/segment_embedding/embeddings",
        "embeddings/layer_norm/gamma": "embeddings/layer_norm/gamma",
        "embeddings/layer_norm/beta": "embeddings/layer_norm/beta",
        "pooler_transform/kernel": "pooler/kernel",
        "pooler_transform/bias": "pooler/bias",
    }
    values = {theirs: arrays[ours] for theirs, ours in names.items()}
    for i in range(6):
        theirs, ours = f"transformer/layer_{i}", f"encoder_block_{i}"
        for kind in ("kernel", "bias"):
            parts = np.split(arrays[f"{ours}/attention/qkv/{kind}"], 3, axis=-1)
            for part, array in zip(("query", "key", "value"), parts, strict=True):
                values[f"{theirs}/self_attention/{part}/{kind}"] = array
            values |= {
                f"{theirs}/self_attention/attention_output/{kind}": arrays[
                    f"{ours}/attention/output/{kind}"
                ],
                f"{theirs}/intermediate/{kind}": arrays[f"{ours}/feed_forward/intermediate/{kind}"],
                f"{theirs}/output/{kind}": arrays[f"{ours}/feed_forward/output/{kind}"],
            }
        for kind in ("gamma", "beta"):
            values |= {
                f"{theirs}/self_attention_layer_norm/{kind}": arrays[
                    f"{ours}/attention_residual/layer_norm/{kind}"
                ],
                f"{theirs}/output_layer_norm/{kind}": arrays[
                    f"{ours}/feed_forward_residual/layer_norm/{kind}"
                ],
            }
    assert sorted(values) == sorted(targets)
    for name, array in values.items():
        targets[name].assign(array.reshape(targets[name].shape))


@pytest.mark.parametrize("policy", ["bfloat16", "mixed_bfloat16", "mixed_float16"])
def test_low_precision_stays_near(model, minilm_directory, inputs, policy):
    # bfloat16 has 8 bits: about 0.4 % a number, and errors of many numbers add up like noise.
    low = Bert.from_pretrained(minilm_directory, dtype=policy)
    mask = inputs["padding_mask"]
    expected = np.asarray(model(inputs)["sequence_output"])[mask]
    found = keras.ops.cast(low(inputs)["sequence_output"], "float32")
    found = keras.ops.convert_to_numpy(found)[mask]
    cosine = (expected * found).sum(-1) / np.linalg.norm(expected, axis=-1)
    cosine /= np.linalg.norm(found, axis=-1)
    assert cosine.min() > 0.998
