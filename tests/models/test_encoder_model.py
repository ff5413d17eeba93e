"""Bert.from_pretrained and save_pretrained: formats, overrides and refusals."""

import json
import logging

import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.models.bert import Bert
from kbert.models.roberta import Roberta
from tests.checkpoints.synthetic_bert import CONFIG, hf_tensors, write_hf, write_vocabulary
from tests.small_bert import CONFIG as SMALL
from tests.small_bert import DEFAULTS, INPUTS, small_bert


def same_weights(one, other):
    return all(
        a.path == b.path and np.array_equal(a, b)
        for a, b in zip(one.weights, other.weights, strict=True)
    )


@pytest.mark.parametrize("format", ["kbert", "huggingface", "tf1"])
def test_a_round_trip(tmp_path, format):
    model = small_bert(dropout=0.3, attention_dropout=0.2, layer_norm_epsilon=1e-12)
    folder = model.save_pretrained(tmp_path / "saved", format=format)
    assert folder == tmp_path / "saved"
    again = Bert.from_pretrained(folder)
    assert again.get_config() == model.get_config()
    assert same_weights(model, again)
    np.testing.assert_array_equal(again(INPUTS)["pooled_output"], model(INPUTS)["pooled_output"])


def test_what_kbert_writes(tmp_path):
    model = small_bert(gradient_checkpointing=True)
    folder = model.save_pretrained(tmp_path / "saved")
    arrays = load_file(folder / "model.safetensors")
    assert sorted(arrays) == sorted(v.path.removeprefix("bert/") for v in model.weights)
    config = json.loads((folder / "kbert.json").read_text())["config"]
    assert config == {**SMALL, **DEFAULTS}  # how to train is no part of the model
    assert Bert.from_pretrained(folder).gradient_checkpointing is False


def test_vocabulary_and_case(tmp_path):
    write_vocabulary(tmp_path)
    model = small_bert(vocabulary_size=23)
    folder = model.save_pretrained(
        tmp_path / "saved", vocabulary=tmp_path / "vocab.txt", lowercase=False
    )
    assert (folder / "vocabulary.txt").read_bytes() == (tmp_path / "vocab.txt").read_bytes()
    assert json.loads((folder / "kbert.json").read_text())["lowercase"] is False


def test_hugging_face_to_kbert_to_hugging_face(tmp_path):
    source = write_hf(tmp_path / "source", hf_tensors())
    model = Bert.from_pretrained(source)
    assert {key: model.get_config()[key] for key in CONFIG} == CONFIG
    native = model.save_pretrained(tmp_path / "native")
    back = Bert.from_pretrained(native).save_pretrained(tmp_path / "back", format="huggingface")
    before, after = (load_file(folder / "model.safetensors") for folder in (source, back))
    assert before.keys() == after.keys()
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)


@pytest.mark.parametrize("format", ["kbert", "huggingface", "tf1"])
def test_overrides(tmp_path, format):
    folder = small_bert().save_pretrained(tmp_path / "saved", format=format)
    model = Bert.from_pretrained(
        folder,
        dropout=0.0,
        attention_dropout=0.0,
        dtype="mixed_bfloat16",
        name="other",
        gradient_checkpointing=True,
    )
    assert (model.dropout, model.attention_dropout, model.name) == (0.0, 0.0, "other")
    assert model.dtype_policy.name == "mixed_bfloat16" and model.gradient_checkpointing
    once, again = (np.asarray(model(INPUTS, training=True)["pooled_output"]) for _ in range(2))
    np.testing.assert_array_equal(once, again)


def test_weights_of_lower_precision(tmp_path):
    source = write_hf(tmp_path / "source", hf_tensors("bfloat16"))
    full, low = Bert.from_pretrained(source), Bert.from_pretrained(source, dtype="bfloat16")
    assert {v.dtype for v in full.weights} == {"float32"}
    assert {v.dtype for v in low.weights} == {"bfloat16"}
    # bfloat16 weights go out as they came in.
    back = low.save_pretrained(tmp_path / "back", format="huggingface")
    before, after = (load_file(folder / "model.safetensors") for folder in (source, back))
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)


def test_without_a_pooler(tmp_path, caplog):
    source = write_hf(tmp_path / "source", hf_tensors(pooler=False))
    with caplog.at_level(logging.INFO, logger="kbert"):
        model = Bert.from_pretrained(source)
    assert "pooler" in caplog.text
    assert np.abs(np.asarray(model.pooler.kernel)).max() > 0  # a random start


def test_a_vocabulary_that_is_too_long_is_not_written(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(f"token{i}" for i in range(24)))
    with pytest.raises(ValueError, match="Received: 24 tokens, 23 rows"):
        small_bert().save_pretrained(tmp_path / "model", vocabulary=tmp_path / "vocab.txt")
    assert not (tmp_path / "model").exists()


def test_an_unknown_format(tmp_path):
    message = r"`format` must be one of \['kbert', 'huggingface', 'tf1'\]. Received: format='onnx'"
    with pytest.raises(ValueError, match=message):
        small_bert().save_pretrained(tmp_path / "saved", format="onnx")
    assert not (tmp_path / "saved").exists()


def test_an_existing_folder_is_kept(tmp_path):
    folder = small_bert().save_pretrained(tmp_path / "saved")
    before = (folder / "kbert.json").read_bytes()
    with pytest.raises(FileExistsError, match="saved"):
        small_bert().save_pretrained(folder)
    assert (folder / "kbert.json").read_bytes() == before


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Bert.from_pretrained(tmp_path / "nowhere")


def test_no_checkpoint(tmp_path):
    (tmp_path / "note.txt").write_text("hello")
    with pytest.raises(ValueError, match=f"{tmp_path}"):
        Bert.from_pretrained(tmp_path)


def test_arguments_that_do_not_fit_the_weights(tmp_path):
    folder = small_bert().save_pretrained(tmp_path / "saved")
    message = (
        "`arrays` must fit the model. Missing: none; left over: .'encoder_block_1/.*; "
        r"wrong shapes: \['embeddings/position_embedding/embeddings \(expected \(7, 12\), "
        r"found \(9, 12\)\)'\]"
    )
    with pytest.raises(ValueError, match=message):
        Bert.from_pretrained(folder, num_layers=1, max_sequence_length=7)
    with pytest.raises(ValueError, match="Missing: .'encoder_block_2/attention/output/kernel'"):
        Bert.from_pretrained(folder, num_layers=3)
    with pytest.raises(ValueError, match="dropuot"):
        Bert.from_pretrained(folder, dropuot=0.5)


def test_ids_of_predict_are_checked():
    encoder = small_bert()
    ids = np.array([[1, 2], [3, 4]])
    found = encoder.predict({"token_ids": ids}, verbose=0)["sequence_output"]
    np.testing.assert_allclose(found, encoder({"token_ids": ids})["sequence_output"], atol=1e-5)
    with pytest.raises(ValueError, match=r"`segment_ids` must be in \[0, 2\).*Received: 7"):
        encoder.predict({"token_ids": ids, "segment_ids": 7 * np.ones_like(ids)}, verbose=0)
    with pytest.raises(ValueError, match=r"`token_ids` must be in \[0, .*Received: -1"):
        encoder.predict({"token_ids": ids - 2}, verbose=0)


@pytest.mark.parametrize("method", ["fit", "evaluate"])
def test_ids_of_training_are_checked(method):
    encoder = small_bert()
    encoder.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"^`token_ids` must be in \[0, .*Received: -1$"):
        getattr(encoder, method)({"token_ids": np.array([[1, -1]])}, verbose=0)


@pytest.mark.parametrize(
    "arguments, told",
    [
        ({"num_layers": 0}, "`num_layers` must be a positive whole number. Received: num_layers=0"),
        ({"max_sequence_length": 0}, "`max_sequence_length` must be a positive whole number. Rec"),
        ({"hidden_dim": 8.0}, "`hidden_dim` must be .* number. Received: hidden_dim=8.0"),
        ({"causal": "no"}, "`causal` must be true or false. Received: causal='no'"),
        ({"gradient_checkpointing": 1}, "`gradient_checkpointing` must be true or false. Received"),
    ],
)
def test_arguments_that_no_encoder_has(arguments, told):
    sizes = {"hidden_dim": 8, "num_layers": 1, "num_heads": 2, "intermediate_dim": 16}
    for made in (Bert, Roberta):
        with pytest.raises(ValueError, match=f"^{told}"):
            made(20, **{**sizes, **arguments})
