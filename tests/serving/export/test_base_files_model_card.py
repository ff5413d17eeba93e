"""The card of an export: what it says is true."""

from pathlib import Path
from typing import Any

from kbert.serving.export.base_files import CARD_FILE, model_card, write_card

METADATA: dict[str, Any] = {
    "class": "EntityRecognizer",
    "name": "names",
    "version": 3,
    "labels": ["O", "B-PER"],
    "max_sequence_length": 128,
    "signatures": {
        "serving_default": {
            "inputs": [{"name": "text", "dtype": "string", "shape": [None]}],
            "outputs": [{"name": "entity", "dtype": "string", "shape": [None, None]}],
        }
    },
    "kbert_version": "0.1.0",
    "keras_version": "3.15.1",
    "tensorflow_version": "2.20.0",
    "batching": {"max_batch_size": 16},
    "weights": {"parameters": 1234, "bytes": 4936, "dtypes": {"float32": 1234}},
    "graph_bytes": 1_500_000,
    "compute_dtype": "float32",
    "least_server": "2.16",
}


def test_what_it_says():
    card = model_card(METADATA, None)
    assert card.startswith("# names, version 3\n")
    assert "An EntityRecognizer of kbert 0.1.0: it finds names" in card
    assert "| `serving_default` | `text` string (B) | `entity` string (B, any) |" in card
    assert "1,234 numbers as weights (1,234 float32), 4,936 bytes" in card
    assert "its vocabulary, has 1,500,000 bytes" in card and "It computes in float32." in card
    assert "Serving 2.16; TensorFlow promises it from 2.20 on" in card
    assert "windows of at most 128 tokens" in card and "Its 2 labels: `O`, `B-PER`." in card
    assert "joins those that meet to batches of 16 rows" in card
    assert "is not known to the program that exported it" in card


def test_the_constants_of_a_frozen_model_are_in_the_graph():
    card = model_card({**METADATA, "frozen": True}, None)
    assert "its vocabulary and constant weights, has 1,500,000 bytes" in card


def test_what_is_known_of_the_training():
    about = {
        "data": [{"part": "train", "examples": 12000, "source": "train.tsv"}],
        "metrics": {"test": {"accuracy": 0.912345678}},
    }
    card = model_card(METADATA, about)
    assert "| train | 12,000 | train.tsv |" in card
    assert "| test | accuracy | 0.912346 |" in card
    assert "not known" not in card


def test_another_model(tmp_path: Path):
    metadata = {**METADATA, "class": "Doubler", "batching": None, "labels": None}
    write_card(tmp_path, metadata, None)
    card = (tmp_path / CARD_FILE).read_text(encoding="utf-8")
    assert "A Doubler of kbert 0.1.0. Texts go in" in card
    assert "It reads 128 tokens of a text" in card
    assert "does not join them into batches" in card


def test_many_labels_are_counted():
    card = model_card({**METADATA, "labels": [f"L{i}" for i in range(77)]}, None)
    assert "Its 77 labels: `L0`, " in card and "`L49` and 27 more." in card


def test_labels_with_thresholds():
    thresholds = {"O": 0.5, "B-PER": 0.12345}
    card = model_card({**METADATA, "thresholds": thresholds}, None)
    assert "Its 2 labels: `O` from 0.5 on, `B-PER` from 0.123 on." in card
