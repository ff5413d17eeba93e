"""Marian folders as named arrays. (transformers is asked in `tests/tasks/translation/`.)

Which tensor becomes what is written here by hand, from transformers' names.
"""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from kbert.checkpoints.arrays.weight_table import transformer_shapes
from kbert.checkpoints.marian_files import read_marian
from kbert.checkpoints.read_checkpoint import is_marian
from tests.checkpoints.synthetic_marian import (
    HIDDEN,
    LANGUAGE,
    marian_tensors,
    subword_models,
    vocabulary,
    write_marian,
)

SIZE = len(vocabulary(*subword_models()))
LAYER = "model.decoder.layers.0."


def rewritten(folder, **changes):
    """A folder with other tensors; None takes one away."""
    tensors = {**marian_tensors(SIZE), **changes.pop("tensors", {})}
    return write_marian(folder, {k: v for k, v in tensors.items() if v is not None}, **changes)


def test_a_published_layout(tmp_path):
    folder = write_marian(tmp_path / "marian")
    found, raw = read_marian(folder), marian_tensors(SIZE)
    assert found.transformer["vocabulary_size"] == SIZE + 1  # with a piece of the English model
    assert found.settings == {"beam_size": 4}
    shapes = {name: array.shape for name, array in found.arrays.items()}
    assert shapes == transformer_shapes(found.transformer)
    assert {array.dtype.name for array in found.arrays.values()} == {"float32"}
    attention = [raw[f"{LAYER}self_attn.{part}_proj.weight"].T for part in "qkv"]
    block = "decoder_block_0/"
    for name, wanted in {
        "self_attention/qkv/kernel": np.concatenate(attention, axis=1),
        "cross_attention/query/kernel": raw[f"{LAYER}encoder_attn.q_proj.weight"].T,
        "cross_attention/key_value/bias": np.concatenate(
            [raw[f"{LAYER}encoder_attn.{part}_proj.bias"] for part in "kv"]
        ),
        "cross_attention_residual/layer_norm/gamma": raw[f"{LAYER}encoder_attn_layer_norm.weight"],
        "feed_forward/intermediate/kernel": raw[f"{LAYER}fc1.weight"].T,
        "feed_forward/output/bias": raw[f"{LAYER}fc2.bias"],
        "feed_forward_residual/layer_norm/beta": raw[f"{LAYER}final_layer_norm.bias"],
    }.items():
        np.testing.assert_array_equal(found.arrays[block + name], wanted)
    second = raw["model.encoder.layers.1.self_attn_layer_norm.bias"]
    beta = found.arrays["encoder_block_1/attention_residual/layer_norm/beta"]
    np.testing.assert_array_equal(beta, second)


def test_rows_of_pieces_that_the_vocabulary_lacks(tmp_path):
    """They are the unknown piece's, and never said; the padding is forbidden by `bad_words_ids`."""
    found, raw = read_marian(write_marian(tmp_path / "marian")), marian_tensors(SIZE)
    table = found.arrays["source_embedding/embeddings"]
    np.testing.assert_array_equal(table[:SIZE], raw["model.shared.weight"])
    np.testing.assert_array_equal(table[SIZE], raw["model.shared.weight"][1])
    bias, before = found.arrays["output/bias"], raw["final_logits_bias"][0]
    np.testing.assert_array_equal(bias[: SIZE - 1], before[:-1])
    np.testing.assert_allclose(bias[SIZE - 1 :], [before[-1] - 100.0, before[1] - 100.0])


def test_generation_settings_count_more(tmp_path):
    folder = write_marian(tmp_path / "marian")
    generation = {"num_beams": 6, "bad_words_ids": [[2, 3], [4]]}
    (folder / "generation_config.json").write_text(json.dumps(generation))
    found, before = read_marian(folder), marian_tensors(SIZE)["final_logits_bias"][0]
    assert found.settings == {"beam_size": 6}
    wanted = before - 100.0 * (np.arange(SIZE) == 4)
    np.testing.assert_allclose(found.arrays["output/bias"][:SIZE], wanted)


def test_embeddings_that_are_not_scaled(tmp_path):
    """kbert multiplies what it reads by sqrt(16) = 4; the output stays."""
    found = read_marian(write_marian(tmp_path / "marian", scale_embedding=False))
    table = marian_tensors(SIZE)["model.shared.weight"]
    for name in ("source_embedding/embeddings", "target_embedding/embeddings"):
        np.testing.assert_array_equal(found.arrays[name][:SIZE], table / 4)
    np.testing.assert_array_equal(found.arrays["output/kernel"][:, :SIZE], table.T)


def test_tables_of_their_own(tmp_path):
    draw = np.random.default_rng(4)
    names = [f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder")]
    names.append("lm_head.weight")
    tables = [draw.normal(size=(SIZE, HIDDEN)).astype("float32") for _ in names]
    tensors = {**dict(zip(names, tables)), "model.shared.weight": None}
    options = {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False}
    found = read_marian(rewritten(tmp_path / "marian", tensors=tensors, **options))
    assert found.transformer["source_vocabulary_size"] == SIZE + 1
    for name, wanted in zip(("source_embedding", "target_embedding"), tables):
        np.testing.assert_array_equal(found.arrays[f"{name}/embeddings"][:SIZE], wanted)
    np.testing.assert_array_equal(found.arrays["output/kernel"][:, :SIZE], tables[2].T)


def test_other_names_of_the_table_and_what_is_left_out(tmp_path):
    table = marian_tensors(SIZE)["model.shared.weight"]
    tensors = {
        "model.shared.weight": None,
        "final_logits_bias": None,
        "model.decoder.embed_tokens.weight": table.astype("float16"),
        "lm_head.weight": table,
        "model.encoder.embed_positions.weight": np.zeros((24, HIDDEN), "float32"),
    }
    found = read_marian(rewritten(tmp_path / "marian", tensors=tensors))
    read = found.arrays["source_embedding/embeddings"]
    np.testing.assert_array_equal(read[:SIZE], table.astype("float16").astype("float32"))
    np.testing.assert_array_equal(found.arrays["output/bias"][: SIZE - 1], 0.0)


def test_shards(tmp_path):
    folder, tensors = write_marian(tmp_path / "marian"), marian_tensors(SIZE)
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {"a.safetensors": names[:9], "b.safetensors": names[9:]}
    for file, some in shards.items():
        save_file({name: tensors[name] for name in some}, folder / file)
    weight_map = {name: file for file, some in shards.items() for name in some}
    index = json.dumps({"weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(index)
    whole = read_marian(write_marian(tmp_path / "whole"))
    for name, array in read_marian(folder).arrays.items():
        np.testing.assert_array_equal(array, whole.arrays[name])


@pytest.mark.parametrize(
    "tensors, message",
    [
        ({f"{LAYER}fc1.bias": None}, f"those of a Marian model.*missing: {LAYER}fc1.bias"),
        ({"model.shared.weight": None}, "missing: model.shared.weight"),
        ({"more": np.zeros(2, "float32")}, "not known: more"),
        ({f"{LAYER}fc2.bias": np.zeros(3, "float32")}, r"fc2.bias \(expected \(16,\), found"),
    ],
)
def test_tensors_that_do_not_fit(tensors, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_marian(rewritten(tmp_path / "marian", tensors=tensors))


def test_a_folder_without_weights(tmp_path):
    folder = write_marian(tmp_path / "marian")
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="model.safetensors.index.json"):
        read_marian(folder)


def test_what_is_a_marian_folder(tmp_path):
    assert is_marian(write_marian(tmp_path / "marian"))
    assert not is_marian(tmp_path) and not is_marian(tmp_path / "nothing")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    assert not is_marian(tmp_path)


def test_the_language_code_is_a_piece_of_the_source(tmp_path):
    found = read_marian(write_marian(tmp_path / "marian"))
    assert LANGUAGE.encode() in found.source_subwords
