import pytest
import tensorflow as tf

from kbert.tasks.load import load
from kbert.training.run import train
from kbert.training.runs.run_directory import load_run

MIRRORED = {"strategy": "mirrored", "replicas": 1}


@pytest.mark.slow
def test_random_weights_learn_the_tiny_task(tiny, tmp_path):
    values = {"encoder": "scratch:tiny", "vocabulary": str(tiny.vocabulary), "epochs": 2}
    values["validation"] = None
    path = train(tiny.config(tmp_path / "run", **values, learning_rate=1e-3, batch_size=4))
    run = load_run(path)
    losses = [epoch["training"]["loss"] for epoch in run.metrics["epochs"]]
    assert losses[-1] < losses[0]
    assert load(run.model_directory).encoder.hidden_dim == 128


@pytest.mark.parametrize("how, kind", [({}, None), (MIRRORED, tf.distribute.MirroredStrategy)])
def test_a_run_is_within_the_scope_of_its_strategy(how, kind, tiny, tmp_path, monkeypatch):
    def trained(config):
        return type(tf.distribute.get_strategy()) if tf.distribute.has_strategy() else None

    monkeypatch.setattr("kbert.training.run._trained", trained)
    assert train(tiny.config(tmp_path / "run", **how)) is kind


def test_what_does_not_go_together_with_a_strategy_is_told_first(tiny, tmp_path):
    with pytest.raises(ValueError, match="`replicas` must be left out with strategy='one'"):
        train(tiny.config(tmp_path / "run", replicas=2))
