"""Folders of an ELECTRA, Hugging Face's and kbert's; the counts of weights are published ones."""

import math
from pathlib import Path

import numpy as np
import pytest

from kbert.checkpoints.arrays.encoder_layout import CONFIG_KEYS
from kbert.checkpoints.encoders.electra import LAYOUT, electra_shapes
from kbert.checkpoints.huggingface_files import read_huggingface
from tests.checkpoints.synthetic_encoders import ELECTRA

DTYPES = ("float32", "bfloat16", "float16")


@pytest.mark.parametrize(
    ("embedding", "hidden", "parameters"), [(128, 256, 13_483_008), (768, 768, 108_891_648)]
)
def test_the_number_of_parameters(embedding: int, hidden: int, parameters: int) -> None:
    """Of electra-small-discriminator and electra-base-discriminator, as transformers count them."""
    config = ELECTRA.config | {
        "vocabulary_size": 30522,
        "embedding_dim": embedding,
        "hidden_dim": hidden,
        "num_layers": 12,
        "intermediate_dim": 4 * hidden,
        "max_sequence_length": 512,
    }
    assert sum(math.prod(shape) for shape in electra_shapes(config).values()) == parameters


def test_every_weight_and_every_key_has_a_name() -> None:
    table = LAYOUT.huggingface_table(ELECTRA.config)
    assert [entry.canonical for entry in table] == list(electra_shapes(ELECTRA.config))
    assert sorted(n for entry in table for n in entry.sources) == sorted(ELECTRA.tensors())
    assert set(LAYOUT.huggingface.keys) == {*CONFIG_KEYS, "embedding_dim"}


def test_there_is_no_projection_where_the_widths_are_equal() -> None:
    shapes = electra_shapes(ELECTRA.config | {"embedding_dim": 4})
    assert not any(name.startswith("embedding_projection") for name in shapes)


@pytest.mark.parametrize(("kind", "dtype"), list(zip(ELECTRA.classes, DTYPES * 3)))
def test_a_round_trip_of_each_class(tmp_path: Path, kind: str, dtype: str) -> None:
    ELECTRA.check_round_trip(tmp_path, kind, dtype)


def test_the_discriminator_is_kept_and_is_no_masked_language_model(tmp_path: Path) -> None:
    checkpoint = read_huggingface(ELECTRA.write(tmp_path / "model", "ElectraForPreTraining"))
    assert checkpoint.head_class == "ElectraForPreTraining"
    assert any("discriminator_predictions.dense.bias" in line for line in checkpoint.report)


def test_the_first_layer_of_a_choice_has_another_name(tmp_path: Path) -> None:
    tensors = ELECTRA.tensors("ElectraForMultipleChoice")
    checkpoint = read_huggingface(ELECTRA.write(tmp_path / "model", "ElectraForMultipleChoice"))
    np.testing.assert_array_equal(
        checkpoint.heads["hidden.weight"], tensors["sequence_summary.summary.weight"]
    )
    assert checkpoint.head_class == "BertForMultipleChoice"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("summary_type", "mean", "`summary_type` must be 'first' or absent.*'mean'"),
        ("summary_activation", "tanh", "`summary_activation` must be 'gelu' or absent"),
        ("is_decoder", True, "`is_decoder` must be False or absent"),
        ("embedding_size", 4, "not known: embeddings_project.bias, embeddings_project.weight"),
    ],
)
def test_what_is_refused(tmp_path: Path, field: str, value: object, message: str) -> None:
    folder = ELECTRA.write(tmp_path / "model", **{field: value})
    with pytest.raises(ValueError, match=message):
        read_huggingface(folder)
