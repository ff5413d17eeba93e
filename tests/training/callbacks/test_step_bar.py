import io
import os
import pty
import select
import sys
import time
from contextlib import contextmanager

import pytest
from rich.console import Console
from rich.progress import Progress

from kbert.training.callbacks.step_bar import StepBar, draws_bar, step_bar
from kbert.training.runs.run_log import RunLog


def begun(done=0, size=None, **how):
    """A bar that nobody sees, and its one task."""
    bar = StepBar(Progress(console=Console(file=io.StringIO())), done, **how)
    bar.set_params({"steps": size})
    return bar, bar._progress.tasks[0]


def shown(task):
    return task.description, task.completed, task.total


def test_each_epoch_has_its_steps():
    bar, task = begun(epochs=2, size=3)
    bar.on_epoch_begin(0)
    assert shown(task) == ("epoch 1/2", 0, 3)
    bar.on_train_batch_end(0, {"loss": 0.5})
    bar.on_train_batch_end(1, {"loss": 0.25})
    assert shown(task) == ("epoch 1/2", 2, 3) and task.fields == {"loss": "loss 0.2500"}
    bar.on_epoch_end(0)
    assert task.description == "measuring epoch 1/2"
    bar.on_epoch_begin(1)
    assert shown(task) == ("epoch 2/2", 0, 3) and task.fields == {"loss": ""}


def test_an_epoch_that_goes_on_counts_what_was_done():
    """Five of eight steps were done before; Keras knows of the other three alone."""
    bar, task = begun(done=5, epochs=9, size=3)
    bar.on_epoch_begin(3)
    assert shown(task) == ("epoch 4/9", 5, 8)
    bar.on_train_batch_end(0)
    assert shown(task) == ("epoch 4/9", 6, 8)
    bar.on_epoch_end(3)
    bar.set_params({"steps": 8})
    bar.on_epoch_begin(4)
    assert shown(task) == ("epoch 5/9", 0, 8)


def test_a_training_in_intervals_has_one_bar():
    """Of nine steps two were done before; then intervals of four and of three."""
    bar, task = begun(done=2, steps=9)
    assert shown(task) == ("training", 2, 9)
    for number, size in enumerate((4, 3)):
        bar.set_params({"steps": size})
        bar.on_epoch_begin(number)
        for batch in range(size):
            bar.on_train_batch_end(batch, {"loss": 1.0})
        bar.on_test_begin()
        assert task.description == "measuring"
        bar.on_test_end()
        bar.on_epoch_end(number)
        assert shown(task) == ("training", (6, 9)[number], 9)


def test_several_steps_that_are_one_call():
    """Of five steps the last call of two does one, and Keras counts it whole."""
    bar, task = begun(epochs=1, size=5)
    bar.on_epoch_begin(0)
    seen = []
    for batch in (1, 3, 5):
        bar.on_train_batch_end(batch, {"loss": 1.0})
        seen.append(task.completed)
    assert seen == [2, 4, 5]


def test_an_unknown_number_of_steps():
    bar, task = begun(epochs=1)
    bar.on_epoch_begin(0)
    bar.on_train_batch_end(0)
    assert shown(task) == ("epoch 1/1", 1, None)


@contextmanager
def terminal(monkeypatch):
    """Makes stderr a terminal; gives a function that reads what was drawn on it."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream, monkeypatch.context() as patched:
        for name, value in (("TERM", "xterm"), ("COLUMNS", "100")):
            patched.setenv(name, value)
        patched.setattr(sys, "stderr", stream)

        def drawn():
            stream.flush()
            found = b""
            while select.select([ours], [], [], 0)[0]:
                found += os.read(ours, 65536)
            return found.decode()

        yield drawn
        assert sys.stderr is stream
    os.close(ours)


def test_at_a_terminal_lines_stand_above_the_bar(monkeypatch):
    log = RunLog()
    with terminal(monkeypatch) as drawn:
        assert draws_bar()
        with step_bar(3, epochs=2) as (bar,):
            bar.set_params({"steps": 4})
            bar.on_epoch_begin(0)
            bar.on_train_batch_end(0, {"loss": 0.5})
            bar._progress.refresh()
            bar.on_epoch_end(0)
            log.line("epoch 1/2: loss 0.5000")
        text = drawn()
    assert text.startswith("compiling the first step ...")
    assert "4/7" in text and text.count("epoch 1/2: loss 0.5000") == 1
    assert text.rstrip().endswith("\x1b[2K")  # the bar has gone: its line is erased


def test_a_bar_goes_with_an_error(monkeypatch):
    with terminal(monkeypatch) as drawn:
        with pytest.raises(KeyboardInterrupt):
            with step_bar(0, epochs=2):
                raise KeyboardInterrupt
        assert "\x1b[?25h" in drawn()  # the cursor is there again


def test_elsewhere_nothing_is_drawn(monkeypatch, capsys):
    with terminal(monkeypatch):
        monkeypatch.setenv("TERM", "dumb")
        assert not draws_bar()
    monkeypatch.setenv("TERM", "xterm")
    with step_bar(0, epochs=2) as callbacks:
        assert callbacks == []
    assert capsys.readouterr().err == "compiling the first step ...\n"


@pytest.mark.parametrize("how, numbers", [({"epochs": 2}, (5, 1)), ({"steps": 9}, (5, 6))])
def test_where_no_bar_is_drawn_a_line_comes_every_half_minute(how, numbers, monkeypatch, capsys):
    """Three steps were done before, of the first epoch or in all; each step takes 20 seconds."""
    clock = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    with step_bar(3, log=RunLog(), **how) as (lines,):
        for epoch, steps in enumerate((2, 1)):
            lines.on_epoch_begin(epoch)
            for batch in range(steps):
                clock[0] += 20.0 * (epoch + 1)
                lines.on_train_batch_end(batch, {"loss": 0.5})
            lines.on_epoch_end(epoch)
    first, second = (f"  step {number}: loss 0.5000" for number in numbers)
    assert capsys.readouterr().err.splitlines() == [
        "compiling the first step ...",
        f"{first}, 0.05 steps/s",
        f"{second}, 0.03 steps/s",  # 1 / 40
    ]
