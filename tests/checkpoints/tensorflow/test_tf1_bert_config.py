import pytest

from kbert.checkpoints.tensorflow.tf1_bert import config_from_google, config_to_google
from tests.checkpoints.synthetic_bert import CONFIG, GOOGLE_CONFIG


def test_both_ways() -> None:
    assert config_from_google(GOOGLE_CONFIG, "x", gelu="gelu") == CONFIG
    assert config_to_google(CONFIG) == GOOGLE_CONFIG
    config = config_from_google(GOOGLE_CONFIG, "x", gelu="gelu_approximate")
    assert config["activation"] == "gelu_approximate"
    assert config_to_google(config) == GOOGLE_CONFIG


def test_the_defaults_are_those_of_bert_config() -> None:
    # google-research/bert, modeling.py, BertConfig.__init__
    config = config_from_google({"vocab_size": 100}, "x", gelu="gelu")
    assert (config["hidden_dim"], config["num_layers"], config["num_segments"]) == (768, 12, 16)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="x must have vocab_size. Received: hidden_size"):
        config_from_google({"hidden_size": 4}, "x", gelu="gelu")
    with pytest.raises(ValueError, match="`hidden_act` must be one of gelu, relu, tanh, linear"):
        config_from_google(GOOGLE_CONFIG | {"hidden_act": "silu"}, "x", gelu="gelu")
    with pytest.raises(ValueError, match="`activation` must be one of .*activation='silu'"):
        config_to_google(CONFIG | {"activation": "silu"})
    with pytest.raises(ValueError, match="`causal` must be False in Google's format. Received: c"):
        config_to_google(CONFIG | {"causal": True})
