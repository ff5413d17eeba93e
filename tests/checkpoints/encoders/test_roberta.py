"""Hugging Face's and kbert's folders of a RoBERTa; the count of weights is the published one."""

import math
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.checkpoints.arrays.encoder_layout import CONFIG_KEYS
from kbert.checkpoints.encoder_folder import write_native
from kbert.checkpoints.encoders.roberta import LAYOUT, roberta_shapes
from kbert.checkpoints.huggingface_files import read_huggingface, write_huggingface
from tests.checkpoints.synthetic_encoders import ROBERTA

DTYPES = ("float32", "bfloat16", "float16")


@pytest.mark.parametrize(
    ("hidden", "layers", "parameters"), [(768, 12, 124_645_632), (1024, 24, 355_359_744)]
)
def test_the_number_of_parameters(hidden: int, layers: int, parameters: int) -> None:
    """Of roberta-base and roberta-large, as transformers count them, with the pooler."""
    config = ROBERTA.config | {
        "vocabulary_size": 50265,
        "hidden_dim": hidden,
        "num_layers": layers,
        "intermediate_dim": 4 * hidden,
        "max_sequence_length": 512,
    }
    assert sum(math.prod(shape) for shape in roberta_shapes(config).values()) == parameters


def test_every_weight_and_every_key_has_a_name() -> None:
    table = LAYOUT.huggingface_table(ROBERTA.config)
    assert [entry.canonical for entry in table] == list(roberta_shapes(ROBERTA.config))
    assert sorted(n for entry in table for n in entry.sources) == sorted(ROBERTA.tensors())
    assert set(LAYOUT.huggingface.keys) == set(CONFIG_KEYS)


@pytest.mark.parametrize(("kind", "dtype"), list(zip(ROBERTA.classes, DTYPES * 2)))
def test_a_round_trip_of_each_class(tmp_path: Path, kind: str, dtype: str) -> None:
    ROBERTA.check_round_trip(tmp_path, kind, dtype)


def test_names_of_heads_depend_on_the_class(tmp_path: Path) -> None:
    two = read_huggingface(ROBERTA.write(tmp_path / "two", "RobertaForSequenceClassification"))
    assert {name: array.shape for name, array in two.heads.items()} == {
        "hidden.weight": (4, 4),
        "hidden.bias": (4,),
        "classifier.weight": (3, 4),
        "classifier.bias": (3,),
    }
    assert two.head_class == "BertForSequenceClassification"
    one = read_huggingface(ROBERTA.write(tmp_path / "one", "RobertaForTokenClassification"))
    assert sorted(one.heads) == ["classifier.bias", "classifier.weight"]
    # Without the name of the class the heads say which it is.
    two.source_config = {}
    written = write_huggingface(two, tmp_path / "back")
    assert "classifier.out_proj.weight" in load_file(written / "model.safetensors")


def test_both_names_of_the_bias(tmp_path: Path) -> None:
    tensors = ROBERTA.tensors("RobertaForMaskedLM")
    copies = {
        "lm_head.decoder.weight": tensors["roberta.embeddings.word_embeddings.weight"].copy(),
        "lm_head.decoder.bias": tensors["lm_head.bias"].copy(),
    }
    checkpoint = read_huggingface(ROBERTA.write_tensors(tmp_path / "model", tensors | copies))
    assert len(checkpoint.heads) == 5
    np.testing.assert_array_equal(checkpoint.heads["cls.predictions.bias"], tensors["lm_head.bias"])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("pad_token_id", 0, "`pad_token_id` must be 1 or absent.*pad_token_id=0"),
        ("is_decoder", True, "`is_decoder` must be False or absent"),
        ("max_position_embeddings", 2, "`max_sequence_length` must be a positive whole number"),
        ("max_position_embeddings", 11, r"position_embeddings.weight \(expected \(11, 4\)"),
    ],
)
def test_what_is_refused(tmp_path: Path, field: str, value: object, message: str) -> None:
    folder = ROBERTA.write(tmp_path / "model", **{field: value})
    with pytest.raises(ValueError, match=message):
        read_huggingface(folder)


def test_a_causal_encoder_is_none_of_theirs(tmp_path: Path) -> None:
    checkpoint = read_huggingface(ROBERTA.write(tmp_path / "model"))
    checkpoint.config = checkpoint.config | {"causal": True}
    write_native(checkpoint, tmp_path / "own")
    with pytest.raises(ValueError, match=r"one of \(none\) for a causal encoder"):
        write_huggingface(checkpoint, tmp_path / "theirs")
