"""Hugging Face's and kbert's folders of an ALBERT; the counts of weights are the published ones."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.checkpoints.arrays.encoder_layout import CONFIG_KEYS
from kbert.checkpoints.encoder_folder import read_native, write_native
from kbert.checkpoints.encoders.albert import LAYOUT, albert_shapes
from kbert.checkpoints.huggingface_files import read_huggingface, write_huggingface
from kbert.checkpoints.tensorflow.tf1_bert import write_tf1_bert
from tests.checkpoints.synthetic_albert import (
    CONFIG,
    HF_CONFIG,
    ORDER,
    TOKENS,
    albert_tensors,
    write_albert,
)
from tests.checkpoints.synthetic_bert import same_bytes

LABELS = {"classifier.weight": (3, 4), "classifier.bias": (3,)}
SPANS = {"qa_outputs.weight": (2, 4), "qa_outputs.bias": (2,)}
# class -> its heads, whether it has a pooler, and a dtype to try with it
CLASSES: dict[str, tuple[dict[str, tuple[int, ...]], bool, str]] = {
    "AlbertModel": ({}, True, "float32"),
    "AlbertForSequenceClassification": (LABELS, True, "bfloat16"),
    "AlbertForTokenClassification": (LABELS, False, "float32"),
    "AlbertForMultipleChoice": (
        {"classifier.weight": (1, 4), "classifier.bias": (1,)},
        True,
        "float32",
    ),
    "AlbertForQuestionAnswering": (SPANS, False, "float16"),
    "AlbertForMaskedLM": (TOKENS, False, "float32"),
    "AlbertForPreTraining": (TOKENS | ORDER, True, "float32"),
}


@pytest.mark.parametrize(
    ("hidden", "layers", "parameters"), [(768, 12, 11_683_584), (1024, 24, 17_683_968)]
)
def test_the_number_of_parameters(hidden: int, layers: int, parameters: int) -> None:
    """Of albert-base-v2 and albert-large-v2."""
    config = CONFIG | {
        "vocabulary_size": 30000,
        "hidden_dim": hidden,
        "num_layers": layers,
        "intermediate_dim": 4 * hidden,
        "max_sequence_length": 512,
        "embedding_dim": 128,
        "num_groups": 1,
    }
    assert sum(math.prod(shape) for shape in albert_shapes(config).values()) == parameters


def test_every_weight_and_every_key_has_a_name() -> None:
    table = LAYOUT.huggingface_table(CONFIG)
    assert [entry.canonical for entry in table] == list(albert_shapes(CONFIG))
    assert sorted(name for entry in table for name in entry.sources) == sorted(albert_tensors())
    assert set(LAYOUT.huggingface.keys) == {*CONFIG_KEYS, *LAYOUT.sizes}


@pytest.mark.parametrize("name", CLASSES)
def test_a_round_trip_of_each_class(tmp_path: Path, name: str) -> None:
    heads, pooler, dtype = CLASSES[name]
    tensors = albert_tensors(heads, pooler, dtype)
    source = write_albert(tmp_path / "albert-uncased", tensors, architectures=[name], mine=1)
    before = read_huggingface(source)
    assert (before.architecture, before.config) == ("albert", CONFIG)
    assert before.head_class == f"Bert{name.removeprefix('Albert')}"
    assert before.vocabulary_bytes() == (source / "vocab.txt").read_bytes()
    write_native(before, tmp_path / "own")
    after = read_native(tmp_path / "own")
    assert (after.architecture, after.config) == ("albert", CONFIG)
    write_huggingface(after, tmp_path / "back")
    written = load_file(tmp_path / "back" / "model.safetensors")
    assert written.keys() == tensors.keys()
    assert all(same_bytes(written[key], tensors[key]) for key in tensors)
    config = json.loads((tmp_path / "back" / "config.json").read_text())
    assert {key: config[key] for key in HF_CONFIG} == HF_CONFIG | {"architectures": [name]}
    assert config["mine"] == 1


def test_names_and_layout(tmp_path: Path) -> None:
    tensors = albert_tensors(TOKENS | ORDER)
    checkpoint = read_huggingface(write_albert(tmp_path / "model", tensors))
    layer = "albert.encoder.albert_layer_groups.1.albert_layers.0."
    parts = [tensors[f"{layer}attention.{part}.weight"].T for part in ("query", "key", "value")]
    mapping = "albert.encoder.embedding_hidden_mapping_in"
    expected = {
        "embedding_projection/kernel": tensors[f"{mapping}.weight"].T,
        "encoder_block_1/attention/qkv/kernel": np.concatenate(parts, axis=1),
        "encoder_block_1/feed_forward/output/kernel": tensors[f"{layer}ffn_output.weight"].T,
        "encoder_block_1/feed_forward_residual/layer_norm/gamma": tensors[
            f"{layer}full_layer_layer_norm.weight"
        ],
        "pooler/kernel": tensors["albert.pooler.weight"].T,
    }
    for name, array in expected.items():
        np.testing.assert_array_equal(checkpoint.arrays[name], array, err_msg=name)
    for ours, theirs in {
        "cls.predictions.transform.dense.weight": "predictions.dense.weight",
        "cls.predictions.bias": "predictions.bias",
        "cls.sentence_order.bias": "sop_classifier.classifier.bias",
    }.items():
        np.testing.assert_array_equal(checkpoint.heads[ours], tensors[theirs])


def test_copies_of_tied_weights_are_left_out(tmp_path: Path) -> None:
    tensors = albert_tensors(TOKENS)
    copies = {
        "predictions.decoder.weight": tensors["albert.embeddings.word_embeddings.weight"].copy(),
        "predictions.decoder.bias": tensors["predictions.bias"].copy(),
    }
    checkpoint = read_huggingface(write_albert(tmp_path / "model", tensors | copies))
    assert len(checkpoint.heads) == len(TOKENS)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("inner_group_num", 2, "`inner_group_num` must be 1 or absent.*inner_group_num=2"),
        ("is_decoder", True, "`is_decoder` must be False or absent"),
        ("num_hidden_groups", 0, "`num_groups` must be a positive whole number.*num_groups=0"),
        ("num_hidden_groups", 3, "those of an ALBERT encoder.*missing: encoder.albert_layer_g"),
    ],
)
def test_what_is_refused(tmp_path: Path, field: str, value: object, message: str) -> None:
    folder = write_albert(tmp_path / "model", albert_tensors(), **{field: value})
    with pytest.raises(ValueError, match=message):
        read_huggingface(folder)


def test_a_causal_encoder_is_none_of_theirs(tmp_path: Path) -> None:
    checkpoint = read_huggingface(write_albert(tmp_path / "model", albert_tensors()))
    checkpoint.config = checkpoint.config | {"causal": True}
    write_native(checkpoint, tmp_path / "own")
    assert read_native(tmp_path / "own").config["causal"] is True
    with pytest.raises(ValueError, match=r"one of \(none\) for a causal encoder"):
        write_huggingface(checkpoint, tmp_path / "theirs")


def test_the_format_of_google_is_of_bert_alone(tmp_path: Path) -> None:
    checkpoint = read_huggingface(write_albert(tmp_path / "model", albert_tensors()))
    with pytest.raises(ValueError, match="must be of a BERT encoder.*architecture='albert'"):
        write_tf1_bert(checkpoint, tmp_path / "tf1")
