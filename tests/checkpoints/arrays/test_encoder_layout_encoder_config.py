import pytest

from kbert.checkpoints.arrays.encoder_layout import check_config
from tests.checkpoints.synthetic_bert import CONFIG


def test_a_good_configuration() -> None:
    check_config(CONFIG, "x")
    for causal in (True, False):
        check_config(CONFIG | {"causal": causal}, "x")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": 4}, "x: .*only the keys vocabulary_size.*'hidden_size'. Did you mean"),
        ({"zzz": 1}, r"Received: 'zzz'\.$"),
        ({"num_layers": 0}, "x: `num_layers` must be a positive whole .*: num_layers=0"),
        ({"num_layers": True}, "num_layers=True"),
        ({"dropout": 1.0}, r"`dropout` must be a number in \[0, 1\). Received: dropout=1.0"),
        ({"attention_dropout": "0"}, "attention_dropout='0'"),
        ({"layer_norm_epsilon": 0}, "`layer_norm_epsilon` must be a positive number"),
        ({"causal": 1}, "x: `causal` must be true or false. Received: causal=1"),
        ({"casual": True}, "Received: 'casual'. Did you mean `causal`"),
        ({"activation": None}, "`activation` must be a name. Received: activation=None"),
        ({"num_heads": 3}, "`hidden_dim` must be a multiple of `num_heads`.*4, num_heads=3"),
    ],
)
def test_what_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_config(CONFIG | change, "x")


def test_a_missing_key() -> None:
    config = {key: value for key, value in CONFIG.items() if key != "num_heads"}
    with pytest.raises(ValueError, match="x: the configuration must have num_heads"):
        check_config(config, "x")
