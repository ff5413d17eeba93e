import json

import keras
import tensorflow as tf

from kbert.training.recipes.recipe import environment, validation_hashes


def test_it_names_versions_and_machine(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_x")
    found = environment()
    assert found["packages"]["tensorflow"] == tf.__version__
    assert found["packages"]["keras"] == keras.__version__
    assert found["processors"] >= 1
    assert found["variables"]["XLA_FLAGS"] == "--xla_x"
    assert json.loads(json.dumps(found)) == found


def test_validation_examples_of_all_tasks_are_compared():
    assert validation_hashes({"task": "x", "train_sha256": "t"}) == ""
    assert validation_hashes({"validation_sha256": "v", "train_sha256": "t"}) == "v"
    report = {"b_validation_sha256": "2", "a_validation_sha256": "1", "a_train_sha256": "t"}
    assert validation_hashes(report) == "12"
