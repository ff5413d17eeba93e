"""Hugging Face's configuration of Marian in kbert's words."""

import pytest

from kbert.checkpoints.marian_files import config_from_marian, settings_from_marian
from tests.checkpoints.synthetic_marian import marian_config


def test_a_published_configuration():
    assert config_from_marian(marian_config(53), "`file`") == {
        "vocabulary_size": 53,
        "hidden_dim": 16,
        "num_encoder_layers": 2,
        "num_decoder_layers": 1,
        "num_heads": 2,
        "intermediate_dim": 24,
        "max_sequence_length": 24,
        "dropout": 0.1,
        "attention_dropout": 0.0,
        "activation": "silu",
        "norm": "post",
        "positions": "sinusoidal_halves",
        "tied": "all",
        "source_vocabulary_size": None,
        "output_bias": True,
        "layer_norm_epsilon": 1e-5,
    }


def test_missing_fields_have_the_defaults_of_transformers():
    """Those of MarianConfig: 12 layers, 1024 wide, exact GELU, unscaled embeddings."""
    config = config_from_marian({"model_type": "marian"}, "`file`")
    assert (config["vocabulary_size"], config["hidden_dim"]) == (58101, 1024)
    assert (config["num_decoder_layers"], config["intermediate_dim"]) == (12, 4096)
    assert (config["activation"], config["tied"]) == ("gelu", "none")


@pytest.mark.parametrize(
    "changes, tied, sizes",
    [
        ({"share_encoder_decoder_embeddings": False}, "target", (53, 53)),
        (
            {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 40},
            "target",
            (53, 40),
        ),
        ({"tie_word_embeddings": False}, "none", (None, 53)),
        ({"scale_embedding": False}, "none", (None, 53)),
    ],
)
def test_tables(changes, tied, sizes):
    config = config_from_marian(marian_config(53, **changes), "`file`")
    assert config["tied"] == tied
    assert (config["source_vocabulary_size"], config["vocabulary_size"]) == sizes


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"model_type": "mbart"}, "`file`: `model_type` must be 'marian'. Received: 'mbart'"),
        ({"normalize_before": True}, "`normalize_before` must be False or absent. Received: True"),
        ({"static_position_embeddings": False}, "`static_position_embeddings` must be True or abs"),
        ({"decoder_ffn_dim": 32}, "must be equal to `encoder_ffn_dim`. .*=32, encoder_ffn_dim=24"),
        ({"d_model": 0}, "`d_model` must be a positive whole number. Received: 0"),
        ({"encoder_layers": "6"}, "`encoder_layers` must be a positive whole number"),
        ({"activation_function": "mish"}, "`activation_function` must be one of gelu,.*'mish'"),
    ],
)
def test_what_kbert_does_not_build(changes, message):
    with pytest.raises(ValueError, match=message):
        config_from_marian(marian_config(53, **changes), "`file`")


def test_settings():
    assert settings_from_marian({}) == {}
    found = settings_from_marian({"num_beams": 4, "length_penalty": 1, "max_length": 512})
    assert found == {"beam_size": 4, "length_penalty": "power", "alpha": 1.0}
