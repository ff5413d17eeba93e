import time

import keras
import numpy as np
import pytest

from kbert.training.callbacks.interval_record import IntervalRecord, interval_line
from kbert.training.callbacks.state_saver import BadBatch, Saving
from kbert.training.runs.run_log import RunLog
from kbert.training.runs.stopped_runs import StopSignals, TrainingStopped
from kbert.training.runs.train_state import Position, load_state


def model():
    made = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, name="d")], name="m")
    made.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=True)
    return made


def record_in(folder, total=6, **others):
    return IntervalRecord(Saving(folder / "states", 2, 1), 10, total, RunLog(), **others)


def fit(trained, record, intervals, first=0, value=1.0):
    rows = np.full((60, 1), value, "float32")
    trained.fit(
        rows,
        rows,
        batch_size=10,
        steps_per_epoch=2,
        initial_epoch=first,
        epochs=intervals,
        shuffle=False,
        validation_data=(rows[:10], rows[:10]),
        callbacks=record,
        verbose=0,
    )


def test_what_is_written_down_and_saved(tmp_path, capsys):
    trained, record = model(), record_in(tmp_path)
    record.place = lambda batches: {"example": 100 + batches}
    fit(trained, record, 2)
    assert [one["step"] for one in record.intervals] == [2, 4]
    first = record.intervals[0]
    assert set(first["training"]) == set(first["validation"]) == {"loss"}
    assert first["tokens_per_second"] == pytest.approx(20 / first["seconds"])
    told = {"intervals": record.intervals}
    assert record.position == Position(step=4, data={"example": 104}, told=told)
    assert len(list((tmp_path / "states").iterdir())) == 1  # as many as are kept
    again = model()
    assert load_state(tmp_path / "states", again) == record.position
    for one, other in zip(trained.variables, again.variables):
        np.testing.assert_array_equal(one, other)
    assert "step 4/6: loss " in capsys.readouterr().err


def test_measuring_is_no_training(tmp_path):
    trained, record = model(), record_in(tmp_path)

    class Slow(keras.callbacks.Callback):
        def on_test_batch_begin(self, batch, logs=None):
            time.sleep(0.2)

    begin = time.perf_counter()
    fit(trained, [record, Slow()], 1)
    took = time.perf_counter() - begin
    assert 0.0 < record.intervals[0]["seconds"] <= took - 0.2


def test_going_on_knows_what_was_before(tmp_path):
    trained, record = model(), record_in(tmp_path)
    fit(trained, record, 2)
    second = record_in(tmp_path)
    second.start_at(load_state(tmp_path / "states", trained))
    assert [one["step"] for one in second.intervals] == [2, 4]
    seen = []
    second.place = lambda batches: seen.append(batches) or {}
    fit(trained, second, 3, first=2)
    assert seen == [2]  # of this call of `fit`
    assert [one["step"] for one in second.intervals] == [2, 4, 6]
    assert second.position.step == 6


def test_a_loss_that_is_no_number_ends_it_and_leaves_the_last_state(tmp_path):
    seen = []
    bad = BadBatch(tmp_path, lambda at: seen.append(at) or [{"token_ids": np.zeros(2)}])
    trained, record = model(), record_in(tmp_path, bad_batch=bad)
    fit(trained, record, 1)
    with pytest.raises(FloatingPointError, match="Received: nan at step 3. Try a lower learning_r"):
        fit(trained, record, 2, first=1, value=float("nan"))
    assert seen[0].step == 2 and (tmp_path / "bad-batch-step-3.npz").is_file()
    assert record.position.step == 2 and len(record.intervals) == 1
    assert load_state(tmp_path / "states", model()).step == 2


@pytest.mark.parametrize("steps", [1, 2])
def test_a_signal_saves_within_an_interval_too(steps, tmp_path):
    stop = StopSignals("The same command goes on")
    trained, record = model(), record_in(tmp_path, stop=stop)
    record.place = lambda batches: {"example": batches}

    class Ask(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            stop.received = "SIGTERM" if batch + 1 == steps else None

    with pytest.raises(TrainingStopped, match=f"stopped by SIGTERM after step {steps}. The same"):
        fit(trained, [Ask(), record], 2)
    found = load_state(tmp_path / "states", model())
    assert (found.step, found.data) == (steps, {"example": steps})
    assert len(found.told["intervals"]) == steps - 1


def test_calls_of_several_steps_of_which_the_last_is_short(tmp_path):
    """Five steps in calls of two, as Keras counts them: to the sixth."""
    asked, seen = StopSignals("The same command goes on"), []
    bad = BadBatch(tmp_path, lambda at: seen.append(at.step) or iter([{"x": np.zeros(1)}] * 9))
    record = record_in(tmp_path, total=5, stop=asked, bad_batch=bad)
    record.set_model(model())
    record.model.optimizer.build(record.model.trainable_variables)
    record.set_params({"steps": 5})
    record.on_train_begin()
    record.on_epoch_begin(0)
    for batch in (1, 3):
        record.on_train_batch_end(batch, {"loss": 1.0})
    with pytest.raises(FloatingPointError, match="nan at step 5. Try"):
        record.on_train_batch_end(5, {"loss": float("nan")})
    record.on_train_batch_end(5, {"loss": 1.0})
    record.on_epoch_end(0, {"loss": 1.0})
    assert record.position.step == 5 and record.intervals[0]["step"] == 5
    speed = record.intervals[0]["tokens_per_second"] * record.intervals[0]["seconds"]
    assert speed == pytest.approx(5 * 10)
    record.on_epoch_begin(1)
    asked.received = "SIGTERM"
    with pytest.raises(TrainingStopped, match="after step 7"):
        record.on_train_batch_end(1, {"loss": 1.0})
    with pytest.raises(FloatingPointError, match="at one of the steps 8 to 9"):
        record.on_train_batch_end(3, {"loss": float("inf")})
    assert seen == [4, 7]


def test_a_line():
    record = {"step": 1000, "training": {"loss": 2.0}, "seconds": 5.0, "tokens_per_second": 12345.6}
    line = "step 1000/9000: loss 2.0000  (5.0 s, 12,346 tokens/s)"
    assert interval_line(record, 9000) == line
    record["validation"] = {"loss": 3.0}
    assert "loss 2.0000, validation loss 3.0000" in interval_line(record, 9000)
