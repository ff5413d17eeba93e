import os

import pytest

from kbert.training.run import train
from kbert.training.runs.run_directory import load_run, run_directory, write_config, write_json
from kbert.training.several_runs import grid_points
from tests.pinned import check_run
from tests.training.test_several_runs import metrics


def test_the_published_grid(tiny, tmp_path):
    # Devlin et al. 2019, appendix A.3: batch 16, 32; rate 5e-5, 3e-5, 2e-5; epochs (2,) 3, 4.
    points = grid_points(tiny.config(tmp_path / "o", grid=True))
    assert len(points) == 12
    assert {point["batch_size"] for point in points} == {16, 32}
    assert {point["learning_rate"] for point in points} == {5e-5, 3e-5, 2e-5}
    assert {point["epochs"] for point in points} == {3, 4}


def test_impossible_values_are_refused_before_training(tiny, tmp_path):
    config = tiny.config(tmp_path / "o", grid={"epochs": [1, 0]})
    with pytest.raises(ValueError, match="`epochs` must be a whole number, at least 1"):
        train(config)
    assert not os.listdir(tmp_path)


def test_a_grid_keeps_the_best_point(tiny, tmp_path, eagerly):
    # A rate of 1e-9 learns nothing, one of 0.01 does.
    grid = {"epochs": [3], "learning_rate": [1e-9, 0.01]}
    config = tiny.config(tmp_path / "run", grid=grid, monitor="cross_entropy", batch_size=12)
    path = train(config)
    run = load_run(path)
    check_run("fine-tuning over a grid", path, ("metrics.json", "log.txt"))
    rows = run.metrics["grid"]
    assert [row["learning_rate"] for row in rows] == [1e-9, 0.01]
    assert [row["folder"] for row in rows] == ["grid-1", "grid-2"]
    assert rows[1]["value"] < rows[0]["value"] and run.metrics["best"] == "grid-2"
    assert rows[0]["standard_deviation"]["validation"]["accuracy"] is None
    for row in rows:
        point = load_run(path / row["folder"])
        assert point.metrics["final"]["validation"]["cross_entropy"] == row["value"]
        assert point.config.learning_rate == row["learning_rate"]
        assert not (path / row["folder"] / "model").exists()
    assert (path / "model" / "kbert.json").is_file()
    assert run.metrics["best_values"] == {"learning_rate": 0.01, "epochs": 3}
    told = f"best: learning_rate 0.01, epochs 3: cross_entropy {rows[1]['value']:.4f}  (grid-2)"
    assert told in (path / "log.txt").read_text()


@pytest.fixture
def by_hand(monkeypatch):
    """Points that nothing trains: accuracy 0.5 each, their cross entropy by the size of batches."""
    losses = {4: 0.7, 8: 0.6, 12: 0.8, 16: 0.5}

    def once(config, data):
        with run_directory(config.output) as folder:
            write_config(config, folder)
            write_json({}, folder / "report.json")
            measured = metrics(0.5)
            measured["final"]["validation"]["cross_entropy"] = losses[config.batch_size]
            write_json(measured, folder / "metrics.json")
            (folder / "model").mkdir()
            (folder / "model" / str(config.batch_size)).touch()

    monkeypatch.setattr("kbert.training.several_runs.train_once", once)


def test_of_equal_points_the_one_with_the_lower_loss_is_best(tiny, tmp_path, by_hand):
    path = train(tiny.config(tmp_path / "run", grid={"batch_size": [4, 8, 12]}))
    found = load_run(path).metrics
    assert found["best"] == "grid-2" and found["best_values"] == {"batch_size": 8}
    assert found["seconds"] == 3 * 2.0  # of all points
    told = "best: batch_size 8: accuracy 0.5000  (grid-2)\n"
    assert (path / "log.txt").read_text().endswith(told)


def test_a_larger_grid_has_the_model_of_its_own_best_point(tiny, tmp_path, by_hand, monkeypatch):
    """It was stopped when the model of the smaller one stood in its place already."""

    def stopped(*paths):
        raise KeyboardInterrupt

    config = tiny.config(tmp_path / "run", grid={"batch_size": [4, 8]})
    with monkeypatch.context() as patched:
        patched.setattr("kbert.training.several_runs.shutil.copy2", stopped)
        with pytest.raises(KeyboardInterrupt):
            train(config)
    assert os.listdir(tmp_path / "run.incomplete" / "model") == ["8"]
    again = config.with_values(grid={"batch_size": [4, 8, 16]}, allow_config_change=True)
    assert os.listdir(train(again) / "model") == ["16"]
