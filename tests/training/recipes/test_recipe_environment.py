import json

import keras
import tensorflow as tf

from kbert.training.recipes.recipe import environment


def test_it_names_versions_and_machine(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_x")
    found = environment()
    assert found["packages"]["tensorflow"] == tf.__version__
    assert found["packages"]["keras"] == keras.__version__
    assert found["processors"] >= 1
    assert found["variables"]["XLA_FLAGS"] == "--xla_x"
    assert json.loads(json.dumps(found)) == found
