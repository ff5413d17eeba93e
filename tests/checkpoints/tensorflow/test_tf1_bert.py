"""TF1 checkpoints, written by TF1's own Saver in google-research/bert's names."""

import json
from pathlib import Path

import numpy as np
import pytest

from kbert.checkpoints.huggingface_files import write_huggingface
from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.checkpoints.tensorflow.tf1_bert import read_tf1_bert, write_tf1_bert
from tests.checkpoints.synthetic_bert import (
    CONFIG,
    GOOGLE_CONFIG,
    same_bytes,
    tf1_variables,
    write_tf1,
)

tf = pytest.importorskip("tensorflow")


def test_names_shapes_and_layout(tmp_path: Path) -> None:
    variables = tf1_variables()
    prefix = write_tf1(tmp_path / "uncased_model", variables)
    checkpoint = read_tf1_bert(prefix)
    assert checkpoint.config == CONFIG
    assert checkpoint.format == "tf1_bert"
    assert checkpoint.lowercase is True
    assert checkpoint.vocabulary_path == prefix.parent / "vocab.txt"
    assert checkpoint.source_config == {}
    assert len(checkpoint.arrays) == 31
    layer = "bert/encoder/layer_1/"
    parts = [variables[f"{layer}attention/self/{part}/bias"] for part in ("query", "key", "value")]
    np.testing.assert_array_equal(
        checkpoint.arrays["encoder_block_1/attention/qkv/bias"], np.concatenate(parts)
    )
    # Kernels are (in, out) already: query is the first third of the columns.
    kernel = checkpoint.arrays["encoder_block_1/attention/qkv/kernel"]
    np.testing.assert_array_equal(kernel[:, 4:8], variables[f"{layer}attention/self/key/kernel"])
    for ours, theirs in {
        "embeddings/segment_embedding/embeddings": "bert/embeddings/token_type_embeddings",
        "encoder_block_1/attention_residual/layer_norm/gamma": (
            f"{layer}attention/output/LayerNorm/gamma"
        ),
        "encoder_block_1/feed_forward/output/kernel": f"{layer}output/dense/kernel",
        "pooler/kernel": "bert/pooler/dense/kernel",
    }.items():
        assert same_bytes(checkpoint.arrays[ours], variables[theirs]), ours


@pytest.mark.parametrize("given", ["", "bert_model.ckpt", "bert_model.ckpt.index"])
def test_folder_prefix_and_index_are_recognized(tmp_path: Path, given: str) -> None:
    write_tf1(tmp_path / "model", tf1_variables())
    assert read_checkpoint(tmp_path / "model" / given).format == "tf1_bert"


def test_training_state_and_heads(tmp_path: Path) -> None:
    heads = {
        "output_weights": np.float32([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]),
        "output_bias": np.float32([1, 2, 3]),
        "cls/predictions/transform/dense/kernel": np.arange(16, dtype=np.float32).reshape(4, 4),
    }
    training = {
        "global_step": np.int64(7),
        "bert/pooler/dense/kernel/adam_m": np.zeros((4, 4), np.float32),
        "bert/pooler/dense/kernel/adam_v": np.zeros((4, 4), np.float32),
        "output_bias/adam_m": np.zeros(3, np.float32),
    }
    checkpoint = read_tf1_bert(write_tf1(tmp_path / "m", tf1_variables() | heads | training))
    assert sorted(checkpoint.heads) == [
        "classifier.bias",
        "classifier.weight",
        "cls.predictions.transform.dense.weight",
    ]
    # run_classifier.py multiplies with transpose_b=True: (labels, D), as torch.nn.Linear has it.
    assert same_bytes(checkpoint.heads["classifier.weight"], heads["output_weights"])
    # A tf.layers.dense kernel is (in, out): row 0 of it is column 0 of torch's weight.
    assert checkpoint.heads["cls.predictions.transform.dense.weight"][:, 0].tolist() == [0, 1, 2, 3]
    assert (
        "Left out 4 variables of training: bert/pooler/dense/kernel/adam_m, "
        "bert/pooler/dense/kernel/adam_v, global_step, output_bias/adam_m." in checkpoint.report
    )


def test_writing_gives_every_variable_back(tmp_path: Path) -> None:
    variables = tf1_variables() | {
        "output_weights": np.ones((3, 4), np.float32),
        "output_bias": np.zeros(3, np.float32),
    }
    checkpoint = read_tf1_bert(write_tf1(tmp_path / "a", variables))
    prefix = write_tf1_bert(checkpoint, tmp_path / "b")
    reader = tf.train.load_checkpoint(str(prefix))
    assert reader.get_variable_to_shape_map().keys() == variables.keys()
    assert all(same_bytes(reader.get_tensor(name), variables[name]) for name in variables)
    assert json.loads((tmp_path / "b" / "bert_config.json").read_text()) == GOOGLE_CONFIG
    assert read_checkpoint(tmp_path / "b").format == "tf1_bert"


def test_the_heads_of_pretraining_come_back(tmp_path: Path) -> None:
    # run_pretraining.py, get_masked_lm_output and get_next_sentence_output.
    shapes = {
        "cls/predictions/transform/dense/kernel": (4, 4),
        "cls/predictions/transform/dense/bias": (4,),
        "cls/predictions/transform/LayerNorm/gamma": (4,),
        "cls/predictions/transform/LayerNorm/beta": (4,),
        "cls/predictions/output_bias": (11,),
        "cls/seq_relationship/output_weights": (2, 4),
        "cls/seq_relationship/output_bias": (2,),
    }
    draw = np.random.default_rng(1)
    heads = {name: draw.normal(size=shape).astype("float32") for name, shape in shapes.items()}
    variables = tf1_variables() | heads
    checkpoint = read_tf1_bert(write_tf1(tmp_path / "a", variables))
    assert len(checkpoint.heads) == 7
    dense = heads["cls/predictions/transform/dense/kernel"]
    assert same_bytes(
        checkpoint.heads["cls.predictions.transform.dense.weight"], np.ascontiguousarray(dense.T)
    )
    pairs = checkpoint.heads["cls.seq_relationship.weight"]
    assert same_bytes(pairs, heads["cls/seq_relationship/output_weights"])
    reader = tf.train.load_checkpoint(str(write_tf1_bert(checkpoint, tmp_path / "b")))
    assert reader.get_variable_to_shape_map().keys() == variables.keys()
    assert all(same_bytes(reader.get_tensor(name), variables[name]) for name in variables)


def test_writing_what_the_format_cannot_say(tmp_path: Path) -> None:
    checkpoint = read_tf1_bert(write_tf1(tmp_path / "a", tf1_variables()))
    checkpoint.config["layer_norm_epsilon"] = 1e-5
    with pytest.raises(ValueError, match="`layer_norm_epsilon` must be 1e-12 in Google's format"):
        write_tf1_bert(checkpoint, tmp_path / "b")
    checkpoint.heads["crf.weight"] = np.zeros(1, np.float32)
    with pytest.raises(ValueError, match="`heads` must be among .*Received: crf.weight"):
        write_tf1_bert(checkpoint, tmp_path / "b")


def test_to_hugging_face_and_back(tmp_path: Path) -> None:
    checkpoint = read_tf1_bert(write_tf1(tmp_path / "a", tf1_variables()))
    write_huggingface(checkpoint, tmp_path / "hf")
    again = read_checkpoint(tmp_path / "hf")
    assert again.config == checkpoint.config
    assert all(same_bytes(again.arrays[name], checkpoint.arrays[name]) for name in again.arrays)


def test_the_gelu_of_tf1_is_stated(tmp_path: Path) -> None:
    checkpoint = read_tf1_bert(write_tf1(tmp_path / "a", tf1_variables()))
    assert checkpoint.config["activation"] == "gelu"
    assert any("Read gelu as the exact form" in line for line in checkpoint.report)


def test_missing_and_left_over_variables(tmp_path: Path) -> None:
    variables = tf1_variables(pooler=False)
    del variables["bert/encoder/layer_0/output/dense/bias"]
    variables["bert/encoder/layer_7/output/dense/bias"] = np.zeros(4, np.float32)
    prefix = write_tf1(tmp_path / "a", variables)
    with pytest.raises(ValueError) as error:
        read_tf1_bert(prefix)
    assert "missing: bert/encoder/layer_0/output/dense/bias;" in str(error.value)
    assert "not known: bert/encoder/layer_7/output/dense/bias." in str(error.value)


def test_a_configuration_of_another_size(tmp_path: Path) -> None:
    prefix = write_tf1(tmp_path / "a", tf1_variables(), intermediate_size=5)
    with pytest.raises(
        ValueError, match=r"layer_0/intermediate/dense/kernel \(expected \(4, 5\), found \(4, 6\)\)"
    ):
        read_tf1_bert(prefix)


def test_no_configuration(tmp_path: Path) -> None:
    prefix = write_tf1(tmp_path / "a", tf1_variables())
    (tmp_path / "a" / "bert_config.json").unlink()
    with pytest.raises(ValueError, match="must hold bert_config.json: .* the number of heads"):
        read_tf1_bert(prefix)


def test_the_other_gelu_is_written_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = read_tf1_bert(write_tf1(tmp_path / "a", tf1_variables()))
    write_tf1_bert(checkpoint, tmp_path / "b")
    assert "GELU" not in caplog.text
    checkpoint.config["activation"] = "gelu_approximate"
    written = write_tf1_bert(checkpoint, tmp_path / "c")
    assert "one name for both forms of GELU" in caplog.text
    assert read_tf1_bert(written).config["activation"] == "gelu"
