import pytest

from kbert.tasks.load import load
from kbert.training.run import train
from kbert.training.runs.run_directory import load_run


@pytest.mark.slow
def test_random_weights_learn_the_tiny_task(tiny, tmp_path):
    values = {"encoder": "scratch:tiny", "vocabulary": str(tiny.vocabulary), "epochs": 2}
    values["validation"] = None
    path = train(tiny.config(tmp_path / "run", **values, learning_rate=1e-3, batch_size=4))
    run = load_run(path)
    losses = [epoch["training"]["loss"] for epoch in run.metrics["epochs"]]
    assert losses[-1] < losses[0]
    assert load(run.model_directory).encoder.hidden_dim == 128
