import gc
import signal
import threading
from pathlib import Path

import pytest

from kbert.training.runs.stopped_runs import TrainingStopped, attempt_variables, stop_signals

send = signal.raise_signal  # in this thread, at once


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """What a shell runs in the background ignores Ctrl-C, and so would these tests there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_signal_waits_while_it_must(capfd):
    with stop_signals() as stop:
        with pytest.raises(TrainingStopped, match="stopped by SIGTERM. The same command goes on"):
            with stop.deferred():
                assert stop.received is None
                send(signal.SIGTERM)
                assert stop.received == "SIGTERM"
    assert "SIGTERM: stops when the running step is done and saved" in capfd.readouterr().err


def test_within_another_block_the_way_on_is_that_of_the_outer_one():
    with stop_signals("Outer"), pytest.raises(TrainingStopped, match="by SIGTERM. Outer$"):
        with stop_signals("Inner") as stop, stop.deferred():
            send(signal.SIGTERM)
    with stop_signals("Inner") as stop:
        assert stop.how_to_resume == "Inner"


def test_a_signal_that_python_lost_counts_where_the_training_begins(capfd):
    asked = [signal.SIGTERM]

    def in_the_collector(*_):
        if asked:
            send(asked.pop())  # what is raised in such a callback is printed and lost

    gc.callbacks.append(in_the_collector)
    try:
        with stop_signals() as stop:
            gc.collect()
            assert not asked
            with pytest.raises(TrainingStopped, match="stopped by SIGTERM"):
                with stop.deferred():
                    raise AssertionError("not reached")
    finally:
        gc.callbacks.remove(in_the_collector)


def test_where_nothing_has_to_be_waited_for_it_stops_at_once():
    with stop_signals():
        with pytest.raises(TrainingStopped, match="stopped by SIGTERM"):
            send(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_the_second_ctrl_c_does_not_wait():
    with stop_signals() as stop, pytest.raises(KeyboardInterrupt):
        with stop.deferred():
            send(signal.SIGINT)
            assert stop.received == "SIGINT"
            send(signal.SIGINT)
            raise AssertionError("not reached")


def test_a_worker_ignores_the_signals_that_its_launcher_repeats(monkeypatch):
    for key, value in attempt_variables(Path("note"), worker=1, begun=False).items():
        monkeypatch.setenv(key, value)
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with stop_signals(), pytest.raises(TrainingStopped, match="stopped by SIGTERM"):
            with stop_signals() as stop:
                with stop.deferred():
                    send(signal.SIGTERM)
                    send(signal.SIGTERM)
                    assert stop.received == "SIGTERM"
        send(signal.SIGTERM)  # the state is saved, and the process about to end with its own code
        assert not heard
    finally:
        signal.signal(signal.SIGTERM, before)


def test_handlers_are_as_before_and_what_was_ignored_stays_so():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        own = signal.getsignal(signal.SIGINT)
        with stop_signals() as stop:
            send(signal.SIGTERM)
            assert stop.received is None
            assert signal.getsignal(signal.SIGINT) == stop.handle
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGTERM, before)


def test_another_thread_takes_none():
    found = []

    def work():
        with stop_signals():
            found.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]
