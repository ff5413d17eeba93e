"""Calls of a model whose graph batches run at the same time, large ones in turn."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kbert.local_server.concurrent_runs import ConcurrentRuns
from kbert.local_server.limits import Refusal


class Model:
    """Answers when as many calls as are expected have begun; counts those that run at a time."""

    def __init__(self, expected: int) -> None:
        self.barrier = threading.Barrier(expected)
        self.lock = threading.Lock()
        self.running = self.most = 0

    def __call__(self, signature, inputs, stop):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.barrier.wait(5)
        with self.lock:
            self.running -= 1
        if signature == "broken":
            raise ZeroDivisionError("a secret")
        if signature == "refused":
            raise Refusal("INVALID_ARGUMENT", "not so")
        return {"size": np.array([len(text) for text in inputs["text"]])}


def answers(model, *requests, signature="f"):
    told = []

    async def main():
        with ThreadPoolExecutor(16) as executor:
            runs = ConcurrentRuns(model, executor, lambda rows, seconds: told.append(rows))
            asked = [runs.answer(signature, {"text": np.array(r, object)}) for r in requests]
            found = await asyncio.gather(*asked, return_exceptions=True)
            await runs.idle()
            return found

    return asyncio.run(main()), told


def test_small_requests_run_together():
    model = Model(expected=4)
    found, told = answers(model, [b"a"], [b"bb"], [b"ccc", b"d"], [])
    assert [one["size"].tolist() for one in found] == [[1], [2], [3, 1], []]
    assert model.most == 4 and sorted(told) == [0, 1, 1, 2]


def test_large_requests_take_turns():
    model = Model(expected=1)
    found, _ = answers(model, *[[b"x" * 3 * 2**20]] * 4, [b"x" * 6 * 2**20])
    assert [one["size"].tolist() for one in found] == [[3 * 2**20]] * 4 + [[6 * 2**20]]
    assert model.most == 1


def test_a_large_request_keeps_no_small_one_waiting():
    model = Model(expected=3)  # each waits for the others
    found, _ = answers(model, [b"x" * 6 * 2**20], [b"a"], [b"b"])
    assert [len(one["size"]) for one in found] == [1, 1, 1] and model.most == 3


def test_refusals():
    (found,), _ = answers(Model(1), [b"a"] * 1025)
    assert isinstance(found, Refusal) and "may have 1024 rows, and has 1025" in str(found)
    (found,), _ = answers(Model(1), [b"a"], signature="refused")
    assert isinstance(found, Refusal) and found.code == "INVALID_ARGUMENT"
    (found,), _ = answers(Model(1), [b"a"], signature="broken")
    assert isinstance(found, Refusal) and found.code == "INTERNAL" and "secret" not in str(found)


def test_who_goes_leaves_the_others_their_answers():
    model = Model(expected=2)

    async def main():
        with ThreadPoolExecutor(4) as executor:
            runs = ConcurrentRuns(model, executor)
            inputs = {"text": np.array([b"x" * 6 * 2**20], object)}
            gone = asyncio.create_task(runs.answer("f", inputs))
            await asyncio.sleep(0.05)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(gone, 0.01)
            await runs.answer("f", {"text": np.array([b"a"], object)})
            await runs.idle()
            model.barrier = threading.Barrier(1)
            # What it held is free again.
            return await asyncio.wait_for(runs.answer("f", inputs), 5)

    assert asyncio.run(main())["size"].tolist() == [6 * 2**20]


@pytest.mark.parametrize("is_alone", [True, False])
def test_who_goes_stops_a_call_that_shares_no_batch(is_alone):
    stops, over = [], threading.Event()

    def model(name, inputs, stop):
        stops.append(stop)
        over.wait(5)
        return {}

    async def main():
        with ThreadPoolExecutor(1) as executor:
            runs = ConcurrentRuns(model, executor, runs_alone=lambda name, inputs: is_alone)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(runs.answer("f", {"x": np.zeros(1, np.float32)}), 0.1)
            cancelled = [stop and stop.is_cancelled for stop in stops]
            over.set()
            await runs.idle()
            return cancelled

    assert asyncio.run(main()) == [True if is_alone else None]


def test_who_goes_before_the_call_has_begun_is_not_answered():
    gate, ran = threading.Event(), []

    def model(name, inputs, stop):
        gate.wait(5)
        ran.append(name)
        return {"y": inputs["x"]}

    async def main():
        with ThreadPoolExecutor(1) as executor:
            runs, row = ConcurrentRuns(model, executor), {"x": np.zeros(1, np.float32)}
            first = asyncio.create_task(runs.answer("first", row))
            await asyncio.sleep(0.05)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(runs.answer("gone", row), 0.01)
            gate.set()
            await first
            await runs.idle()

    asyncio.run(main())
    assert ran == ["first"]
