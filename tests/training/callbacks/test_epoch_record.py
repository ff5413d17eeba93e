import json
import time
from pathlib import Path

import keras
import pytest

from kbert.metrics.glue import NotFiniteError
from kbert.training.callbacks import epoch_record
from kbert.training.callbacks.epoch_record import EpochRecord
from kbert.training.runs.run_log import RunLog


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
    variables = ()

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
    assert lines[1].startswith("epoch 2/4: loss 1.0000, accuracy 0.7000")
    assert lines[1].endswith(", kept")
    assert not lines[2].endswith(", kept")


def test_the_last_epoch_is_kept_on_wish(tiny, tmp_path):
    record = run(tiny, tmp_path, [0.5, 0.7, 0.6], keep="last")
    assert record.best_epoch == 3 and kept(tmp_path) == {"epoch-3": "3"}


def test_it_stops_where_nothing_gets_better(tiny, tmp_path, capsys):
    record = run(tiny, tmp_path, [0.5, 0.7, 0.7, 0.6, 0.9], early_stopping=2)
    assert len(record.epochs) == 4 and record.best_epoch == 2
    assert "stopped early: no better accuracy for 2 epochs" in capsys.readouterr().err


@pytest.mark.parametrize("first, epochs", [([0, 0, 1], 3), ([0, 0, 0, 0, 0], 5)])
def test_of_several_workers_the_first_decides(tiny, tmp_path, monkeypatch, first, epochs):
    """By itself this one would stop after the fourth epoch."""
    own, told = [], iter(first)

    def gathered(values):
        own.append(values)
        return [[next(told)], values]

    monkeypatch.setattr(epoch_record, "all_gather", gathered)
    record = run(tiny, tmp_path, [0.5, 0.7, 0.7, 0.6, 0.6], early_stopping=2)
    assert len(record.epochs) == epochs
    assert own == [[0], [0], [0], [1], [1]][:epochs]


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


def test_weights_that_the_last_step_ruined_end_the_run(tiny, tmp_path):
    record = record_of(tiny, tmp_path, [0.5])
    record.restore({}, step=6)
    weight = keras.Variable([1.0, float("inf")], name="kernel")
    record.model.variables = (weight,)
    record.on_epoch_begin(0)
    record.on_train_batch_end(0)
    with pytest.raises(FloatingPointError, match="in model/kernel after step 7, .* Try a lower"):
        record.on_epoch_end(0, {"loss": 1.0})
    assert not (tmp_path / "kept").exists()


class Overflowing(Prepared):
    """What the metrics say of predictions that are no numbers; or another error."""

    def measured(self, model):
        raise next(self.values)


def test_predictions_that_are_no_numbers_end_the_run(tiny, tmp_path):
    made = tiny.config(tmp_path / "o", learning_rate=0.5)
    overflow = NotFiniteError("`probabilities` must be finite numbers. Received: 2 of 8")
    validation = Overflowing([overflow, ValueError("no such label")])
    record = EpochRecord(made, validation, "accuracy", 1, tmp_path / "kept", RunLog())
    record.set_model(Model())
    with pytest.raises(FloatingPointError, match="after step 0: .*2 of 8. Try a lower .* than 0.5"):
        go_on(record, [0])
    with pytest.raises(ValueError, match="^no such label$"):
        go_on(record, [0])
    with pytest.raises(FloatingPointError, match="a validation accuracy of nan"):
        go_on(record_of(tiny, tmp_path, [float("nan")]), [0])


def record_of(tiny, tmp_path, values, **config):
    made = tiny.config(tmp_path / "o", epochs=9, **config)
    record = EpochRecord(made, Prepared(values), "accuracy", 100, tmp_path / "kept", RunLog())
    record.set_model(Model())
    return record


def go_on(record, epochs):
    for epoch in epochs:
        record.on_epoch_begin(epoch)
        record.on_epoch_end(epoch, {"loss": 1.0})
    return record


def restored(tiny, tmp_path, told, values, **config):
    record = record_of(tiny, tmp_path, values, **config)
    record.restore(told)
    return record


def test_the_time_of_an_epoch_is_that_of_all_processes(tiny, tmp_path, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    first = record_of(tiny, tmp_path, [0.5, 0.6])
    assert first.told()["epoch_seconds"] == 0.0
    first.on_epoch_begin(0)
    clock[0] += 3.0
    told = first.told()
    assert told["epoch_seconds"] == 3.0
    clock[0] = 0.0  # of another process
    for batch, seconds in ((2, 5.0), (0, 2.0)):  # it goes on, or begins the epoch anew
        again = record_of(tiny, tmp_path, [0.5])
        again.restore(json.loads(json.dumps(told)), batch)
        again.on_epoch_begin(0)
        clock[0] += 2.0
        again.on_epoch_end(0, {"loss": 1.0})
        assert again.epochs[0]["seconds"] == seconds
        assert again.epochs[0]["tokens_per_second"] == 100 / seconds
        assert again.told()["epoch_seconds"] == 0.0


def test_what_was_done_and_the_best_of_it_are_known_again(tiny, tmp_path):
    whole = go_on(record_of(tiny, tmp_path / "a", [0.5, 0.7, 0.6, 0.8]), range(4))
    told = go_on(record_of(tiny, tmp_path, [0.5, 0.7]), range(2)).told()
    again = go_on(restored(tiny, tmp_path, json.loads(json.dumps(told)), [0.6, 0.8]), [2, 3])
    assert [epoch["validation"] for epoch in again.epochs] == [
        epoch["validation"] for epoch in whole.epochs
    ]
    assert (again.best_epoch, again.best_value) == (whole.best_epoch, whole.best_value) == (4, 0.8)
    assert set(kept(tmp_path)) == {"epoch-4"}


def test_an_epoch_that_no_state_knows_is_done_again(tiny, tmp_path):
    """Killed when the new best was written, and the one before it gone, but no state."""
    first = go_on(record_of(tiny, tmp_path, [0.5, 0.7]), [0])
    told = json.loads(json.dumps(first.told()))
    go_on(first, [1])
    again = restored(tiny, tmp_path, told, [0.7])
    assert (again.best_epoch, again.best_value, kept(tmp_path)) == (0, None, {})
    assert go_on(again, [1]).best_epoch == 2 and set(kept(tmp_path)) == {"epoch-2"}
    assert [epoch["epoch"] for epoch in again.epochs] == [1, 2]


def test_a_best_epoch_that_is_lost_ends_no_training(tiny, tmp_path):
    """As above, with a patience that would be over if the lost epoch counted as none."""
    first = go_on(record_of(tiny, tmp_path, [0.5, 0.7], early_stopping=1), [0])
    told = json.loads(json.dumps(first.told()))
    go_on(first, [1])
    again = restored(tiny, tmp_path, told, [0.7], early_stopping=1)
    assert not again.is_over(1)
    assert go_on(again, [1]).best_epoch == 2


def test_patience_goes_on(tiny, tmp_path):
    told = go_on(record_of(tiny, tmp_path, [0.5, 0.4], early_stopping=3), range(2)).told()
    again = restored(tiny, tmp_path, told, [0.3, 0.2], early_stopping=3)
    assert not again.is_over(2)
    go_on(again, [2, 3])
    assert again.model.stop_training and again.is_over(4)
    assert restored(tiny, tmp_path, again.told(), [], early_stopping=3).is_over(4)


class Losing(Prepared):
    """Gives pairs of an accuracy and a cross entropy."""

    def measured(self, model):
        return dict(zip(("accuracy", "cross_entropy"), next(self.values)))


def test_another_metric_is_compared_with_its_own_values(tiny, tmp_path):
    """Epoch 1 is best, of accuracy 0.9 and cross entropy 0.7: 0.8 is worse, 0.6 is better."""
    first = record_of(tiny, tmp_path, [])
    first._validation = Losing([(0.9, 0.7)])
    told = json.loads(json.dumps(go_on(first, [0]).told()))
    made = tiny.config(tmp_path / "o", epochs=9)
    validation = Losing([(0.9, 0.8), (0.9, 0.6)])
    again = EpochRecord(made, validation, "cross_entropy", 1, tmp_path / "kept", RunLog())
    again.set_model(Model())
    again.restore(told)
    assert (again.best_epoch, again.best_value) == (1, 0.7)
    assert go_on(again, [1]).best_epoch == 1
    assert go_on(again, [2]).best_epoch == 3 and set(kept(tmp_path)) == {"epoch-3"}
    unknown = EpochRecord(made, None, "macro_f1", 1, tmp_path / "kept", RunLog())
    unknown.restore(told)
    assert unknown.best_value is None


def test_of_equal_epochs_the_one_with_the_lower_loss_stays(tiny, tmp_path):
    """Accuracy 0.9 three times: cross entropy 0.7, then 0.5, then, after a stop, 0.6."""
    first = record_of(tiny, tmp_path, [])
    first._validation = Losing([(0.9, 0.7), (0.9, 0.5)])
    told = json.loads(json.dumps(go_on(first, [0, 1]).told()))
    assert first.best_epoch == 2 and kept(tmp_path) == {"epoch-2": "2"}
    again = record_of(tiny, tmp_path, [])
    again._validation = Losing([(0.9, 0.6)])
    again.restore(told)
    assert go_on(again, [2]).best_epoch == 2 and set(kept(tmp_path)) == {"epoch-2"}


def test_a_best_of_other_validation_examples_is_compared_with_nothing(tiny, tmp_path):
    first = record_of(tiny, tmp_path, [0.9], early_stopping=1)
    first.restore({}, measured_on="aa")
    told = json.loads(json.dumps(go_on(first, [0]).told()))
    again = record_of(tiny, tmp_path, [0.5], early_stopping=1)
    again.restore(told, measured_on="bb")
    # What was kept stays until there is another, also where the next process asks again.
    assert again.best_value is None and set(kept(tmp_path)) == {"epoch-1"}
    twice = record_of(tiny, tmp_path, [0.5], early_stopping=1)
    twice.restore(json.loads(json.dumps(again.told())), measured_on="bb")
    assert twice.best_value is None and not twice.is_over(2)
    assert go_on(twice, [1]).best_epoch == 2 and twice.best_value == 0.5
    assert set(kept(tmp_path)) == {"epoch-2"}


def test_nothing_to_take_up(tiny, tmp_path):
    record = restored(tiny, tmp_path, {}, [])
    assert (record.epochs, record.best_epoch) == ([], 0) and not record.is_over(0)


def test_a_record_without_weights(tiny, tmp_path):
    made = tiny.config(tmp_path / "o")
    record = EpochRecord(made, Prepared([0.5]), "accuracy", 100, None, RunLog())
    record.set_model(Model())
    go_on(record, [0])
    assert record.told()["best_epoch"] == 1 and not (tmp_path / "kept").exists()
    with pytest.raises(ValueError, match="`folder` must be given"):
        record.kept
