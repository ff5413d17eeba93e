from pathlib import Path

import pytest

from kbert.training.epoch_record import EpochRecord
from kbert.training.run_log import RunLog


class Prepared:
    """Stands for validation examples: gives the accuracies of a list, one an epoch."""

    def __init__(self, values):
        self.values = iter(values)

    def measured(self, model):
        return {"accuracy": next(self.values), "per_class": {}}


class Model:
    """Stands for a model: its weights are a file with the number of times that it was saved."""

    stop_training = False
    saved = 0

    def save_pretrained(self, folder):
        self.saved += 1
        Path(folder).mkdir(parents=True)
        (Path(folder) / "weights").write_text(str(self.saved))


def run(tiny, tmp_path, values, losses=None, **config):
    made = tiny.config(tmp_path / "o", epochs=len(values), **config)
    log = RunLog()
    record = EpochRecord(made, Prepared(values), "accuracy", 100, tmp_path / "kept", log)
    record.set_model(Model())
    for epoch in range(len(values)):
        record.on_epoch_begin(epoch)
        logs = {"loss": losses[epoch] if losses else 1.0}
        record.on_epoch_end(epoch, logs)
        if record.model.stop_training:
            break
    return record


def kept(tmp_path):
    folders = (tmp_path / "kept").iterdir()
    return {folder.name: (folder / "weights").read_text() for folder in folders}


def test_the_best_epoch_is_kept(tiny, tmp_path, capsys):
    record = run(tiny, tmp_path, [0.5, 0.7, 0.6, 0.7])
    assert (record.best_epoch, record.best_value) == (2, 0.7)  # the earlier of two equal ones
    assert kept(tmp_path) == {"epoch-2": "2"}
    assert [epoch["validation"] for epoch in record.epochs][1] == {"accuracy": 0.7}
    lines = capsys.readouterr().err.splitlines()
    assert lines[1].startswith("epoch 2/4: loss 1.0000, accuracy 0.7000") and lines[1].endswith("*")
    assert not lines[2].endswith("*")


def test_the_last_epoch_is_kept_on_wish(tiny, tmp_path):
    record = run(tiny, tmp_path, [0.5, 0.7, 0.6], keep="last")
    assert record.best_epoch == 3 and kept(tmp_path) == {"epoch-3": "3"}


def test_it_stops_where_nothing_gets_better(tiny, tmp_path, capsys):
    record = run(tiny, tmp_path, [0.5, 0.7, 0.7, 0.6, 0.9], early_stopping=2)
    assert len(record.epochs) == 4 and record.best_epoch == 2
    assert "stopped early: no better accuracy for 2 epochs" in capsys.readouterr().err


def test_values_reach_the_callbacks_after_it(tiny, tmp_path):
    made = tiny.config(tmp_path / "o")
    record = EpochRecord(made, Prepared([0.5]), "accuracy", 1, tmp_path / "kept", RunLog())
    record.set_model(Model())
    record.on_epoch_begin(0)
    logs = {"loss": 1.0}
    record.on_epoch_end(0, logs)
    assert logs["val_accuracy"] == 0.5


def test_a_loss_that_is_no_number_ends_the_run(tiny, tmp_path):
    with pytest.raises(FloatingPointError, match="Received: nan in epoch 2. Try a lower"):
        run(tiny, tmp_path, [0.5, 0.6], losses=[1.0, float("nan")])
