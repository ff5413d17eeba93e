"""A Marian folder as a translator. Equality with transformers: test_marian_parity.py."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.tasks.load import load
from kbert.tasks.translation.model import Translator
from tests.checkpoints.synthetic_marian import (
    HIDDEN,
    POSITIONS,
    marian_tensors,
    write_marian,
    write_tokenizer,
)
from tests.translation_reference import Architecture, transformer

TEXT = "the old man reads"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("marian") / "model"
    return write_marian(here, activation_function="relu")


def test_a_translator(folder):
    model = Translator.from_pretrained(folder, alpha=0.6, dtype="float32")
    assert (model.beam_size, model.alpha) == (4, 0.6)
    # Translations begin after the padding, and both languages have the same ids.
    subwords = model.target_subwords
    assert subwords.start_id == subwords.padding_id and subwords.end_id == 0
    assert subwords.pieces == model.source_subwords.pieces
    assert model.predict([TEXT, ""])[1] == ""


@pytest.mark.parametrize("made", [load, Translator.from_pretrained])
def test_it_is_loaded_as_any_other_translator(folder, made):
    model, same = made(folder, beam_size=2), Translator.from_pretrained(folder, beam_size=2)
    assert type(model) is Translator and model.get_config() == same.get_config()
    for one, other in zip(model.weights, same.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_logits(folder, tmp_path):
    """Against the NumPy reference, with names and layout taken from transformers by hand."""
    model = Translator.from_pretrained(folder)
    inputs, _, _ = model.source_inputs(tf.constant([TEXT]))
    target = np.array([[model.target_subwords.start_id, 5, 9, 2]], "int32")
    raw = marian_tensors(len(write_tokenizer(tmp_path)))
    source = inputs["source_token_ids"].numpy()
    # A piece that the vocabulary lacks is the unknown one to Marian.
    size = len(raw["model.shared.weight"])
    assert (source >= size).any()
    wanted = transformer(
        _by_canonical_names(raw),
        np.where(source < size, source, 1),
        target,
        Architecture(2, 2, 1, "post", "relu", 1e-5, "halves"),
        np.ones(source.shape, bool),
    )
    wanted[..., -1] -= 100.0  # the padding, which `bad_words_ids` forbids
    logits = model.transformer({**inputs, "target_token_ids": target}).numpy()
    np.testing.assert_allclose(logits[..., :size], wanted, atol=1e-4)


def _by_canonical_names(raw):
    arrays = {"source_embedding/embeddings": raw["model.shared.weight"]}
    arrays["output/bias"] = raw["final_logits_bias"][0]
    for side, count in (("encoder", 2), ("decoder", 1)):
        for index in range(count):
            layer, block = f"model.{side}.layers.{index}.", f"{side}_block_{index}/"
            own = "attention" if side == "encoder" else "self_attention"
            qkv = [raw[f"{layer}self_attn.{part}_proj.weight"].T for part in "qkv"]
            arrays[f"{block}{own}/qkv/kernel"] = np.concatenate(qkv, axis=1)
            qkv = [raw[f"{layer}self_attn.{part}_proj.bias"] for part in "qkv"]
            arrays[f"{block}{own}/qkv/bias"] = np.concatenate(qkv)
            linears = {f"{own}/output": "self_attn.out_proj"}
            norms = {own: "self_attn_layer_norm", "feed_forward": "final_layer_norm"}
            if side == "decoder":
                linears |= {"cross_attention/query": "encoder_attn.q_proj"}
                linears |= {"cross_attention/output": "encoder_attn.out_proj"}
                norms["cross_attention"] = "encoder_attn_layer_norm"
                both = [raw[f"{layer}encoder_attn.{part}_proj.weight"].T for part in "kv"]
                arrays[f"{block}cross_attention/key_value/kernel"] = np.concatenate(both, axis=1)
                both = [raw[f"{layer}encoder_attn.{part}_proj.bias"] for part in "kv"]
                arrays[f"{block}cross_attention/key_value/bias"] = np.concatenate(both)
            linears |= {"feed_forward/intermediate": "fc1", "feed_forward/output": "fc2"}
            for name, theirs in linears.items():
                arrays[f"{block}{name}/kernel"] = raw[f"{layer}{theirs}.weight"].T
                arrays[f"{block}{name}/bias"] = raw[f"{layer}{theirs}.bias"]
            for name, theirs in norms.items():
                arrays[f"{block}{name}_residual/layer_norm/gamma"] = raw[f"{layer}{theirs}.weight"]
                arrays[f"{block}{name}_residual/layer_norm/beta"] = raw[f"{layer}{theirs}.bias"]
    return arrays


def test_settings_of_the_caller_count_more(folder):
    model = Translator.from_pretrained(folder, beam_size=1, length_ratio=1.0)
    assert (model.beam_size, model.length_ratio) == (1, 1.0)
    assert model.transformer.hidden_dim == HIDDEN
    assert model.max_source_length == POSITIONS
