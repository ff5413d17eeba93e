"""Several labels a text from TFDS, whose features are real and whose rows are made up."""

import numpy as np
import pytest

from kbert.data import tfds_label_sets
from kbert.data.classification.label_sets import label_set_targets
from kbert.data.tfds_label_sets import read_tfds_label_sets
from kbert.tasks.multi_label.task import TASK
from kbert.training.config.finetuning_config import RunConfig


@pytest.fixture(autouse=True)
def dataset(monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")

    class Dataset:
        features = {
            "comment": tfds.features.Text(),
            "joy": np.bool_,
            "anger": np.float32,
            "topics": tfds.features.Sequence(tfds.features.ClassLabel(names=["art", "war"])),
        }

        def __init__(self, name, data_dir):
            pass

        def rows(self, split, manual_dir, check_manual_files):
            return iter(
                [
                    {"comment": b"a", "joy": True, "anger": np.float32(0.25), "topics": [1, 0]},
                    {"comment": "é".encode(), "joy": False, "anger": np.float32(0), "topics": []},
                ]
            ), f"tfds:made_up/{split}"

    monkeypatch.setattr(tfds_label_sets, "TfdsDataset", Dataset)


def test_features_of_true_and_false():
    found = read_tfds_label_sets("made_up", text_a="comment", label="joy, anger")
    assert found.text_a == ["a", "é"] and found.source == "tfds:made_up/train"
    assert label_set_targets(found, ["anger", "joy"]).tolist() == [[0.25, 1], [0, 0]]


def test_a_sequence_of_class_labels():
    values = {"task": "multi-label", "encoder": "e", "output": "o", "train": "tfds:made_up"}
    config = RunConfig.from_dict({**values, "text_a": "comment", "label": "topics"})
    assert TASK.read(config, "train").labels == [["war", "art"], []]


def test_wrong_features():
    for label, message in (
        ("joy,angr", "Received: label='angr'. Did you mean `anger`?"),
        ("joy", "must be a sequence of class labels of made_up, or several features. .*'joy'"),
    ):
        with pytest.raises(ValueError, match=message):
            read_tfds_label_sets("made_up", text_a="comment", label=label)
    with pytest.raises(ValueError, match="`text_a` must name a text feature of made_up"):
        read_tfds_label_sets("made_up", label="joy,anger")
