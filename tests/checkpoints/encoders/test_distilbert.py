"""Hugging Face's and kbert's folders of a DistilBERT; the count of weights is the published one."""

import json
import math
from pathlib import Path

import pytest

from kbert.checkpoints.encoder_folder import write_native
from kbert.checkpoints.encoders.distilbert import LAYOUT, distilbert_shapes
from kbert.checkpoints.huggingface_files import read_huggingface, write_huggingface
from tests.checkpoints.synthetic_encoders import DISTILBERT

DTYPES = ("float32", "bfloat16", "float16")


def test_the_number_of_parameters() -> None:
    """Of distilbert-base-uncased, as transformers count them."""
    config = DISTILBERT.config | {
        "vocabulary_size": 30522,
        "hidden_dim": 768,
        "num_layers": 6,
        "intermediate_dim": 3072,
        "max_sequence_length": 512,
    }
    assert sum(math.prod(shape) for shape in distilbert_shapes(config).values()) == 66_362_880


def test_every_weight_and_every_key_has_a_name() -> None:
    table = LAYOUT.huggingface_table(DISTILBERT.config)
    assert [entry.canonical for entry in table] == list(distilbert_shapes(DISTILBERT.config))
    assert sorted(n for entry in table for n in entry.sources) == sorted(DISTILBERT.tensors())
    assert set(LAYOUT.huggingface.keys) == set(DISTILBERT.config)


@pytest.mark.parametrize(("kind", "dtype"), list(zip(DISTILBERT.classes, DTYPES * 2)))
def test_a_round_trip_of_each_class(tmp_path: Path, kind: str, dtype: str) -> None:
    DISTILBERT.check_round_trip(tmp_path, kind, dtype)


def test_that_there_is_no_pooler_is_no_news(tmp_path: Path) -> None:
    checkpoint = read_huggingface(DISTILBERT.write(tmp_path / "model"))
    assert not checkpoint.has_pooler and not checkpoint.lacks_pooler
    assert not any("pooler" in line for line in checkpoint.report)


def test_the_field_of_the_dropout_of_a_head(tmp_path: Path) -> None:
    """The tasks call it classifier_dropout."""
    for kind in ("SequenceClassification", "MultipleChoice"):
        checkpoint = read_huggingface(DISTILBERT.write(tmp_path / kind, f"DistilBertFor{kind}"))
        checkpoint.source_config = {"classifier_dropout": 0.45}
        folder = write_huggingface(checkpoint, tmp_path / f"{kind}-back", False, f"BertFor{kind}")
        config = json.loads((folder / "config.json").read_text())
        assert config["seq_classif_dropout"] == 0.45
        assert "classifier_dropout" not in config
    # That of the encoder is the one of this head too.
    name = "DistilBertForTokenClassification"
    checkpoint = read_huggingface(DISTILBERT.write(tmp_path / "tags", name))
    checkpoint.source_config = {"classifier_dropout": 0.45, "architectures": [name]}
    folder = write_huggingface(checkpoint, tmp_path / "tags-back")
    config = json.loads((folder / "config.json").read_text())
    assert config["dropout"] == 0.1 and 0.45 not in config.values()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("activation", "mish", "`activation` must be one of gelu, .*activation='mish'"),
        ("n_heads", 3, "`hidden_dim` must be a multiple of `num_heads`"),
        ("n_layers", 3, "those of a DistilBERT encoder.*missing: transformer.layer.2.attention.q"),
    ],
)
def test_what_is_refused(tmp_path: Path, field: str, value: object, message: str) -> None:
    folder = DISTILBERT.write(tmp_path / "model", **{field: value})
    with pytest.raises(ValueError, match=message):
        read_huggingface(folder)


@pytest.mark.parametrize("key", ["causal", "num_segments", "layer_norm_epsilon"])
def test_keys_of_bert_that_it_has_not(tmp_path: Path, key: str) -> None:
    checkpoint = read_huggingface(DISTILBERT.write(tmp_path / "model"))
    checkpoint.config = checkpoint.config | {key: 1}
    with pytest.raises(ValueError, match=f"must have only the keys.*Received: '{key}'"):
        write_native(checkpoint, tmp_path / "own")
