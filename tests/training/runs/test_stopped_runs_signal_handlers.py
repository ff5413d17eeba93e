import signal
import threading

from kbert.training.runs.stopped_runs import handled_by

NUMBER = signal.SIGUSR1


def test_a_signal_is_taken_and_given_back():
    heard, before = [], []
    old = signal.signal(NUMBER, lambda number, frame: before.append(number))
    try:
        with handled_by(lambda number, frame: heard.append(number), (NUMBER,)):
            signal.raise_signal(NUMBER)
        signal.raise_signal(NUMBER)
    finally:
        signal.signal(NUMBER, old)
    assert heard == before == [NUMBER]


def test_what_is_ignored_stays_ignored():
    old = signal.signal(NUMBER, signal.SIG_IGN)
    try:
        with handled_by(signal.SIG_DFL, (NUMBER,)):
            assert signal.getsignal(NUMBER) is signal.SIG_IGN
            signal.raise_signal(NUMBER)
    finally:
        signal.signal(NUMBER, old)


def test_another_thread_takes_none():
    seen = []

    def look():
        with handled_by(signal.SIG_IGN, (NUMBER,)):
            seen.append(signal.getsignal(NUMBER))

    before = signal.getsignal(NUMBER)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [before]
