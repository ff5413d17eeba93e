"""Requests that come together share a call; each gets its own rows, refusals and time."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tensorflow.python.eager.cancellation import CancellationManager

from kbert.local_server.batch_queue import BatchQueue
from kbert.local_server.limits import Refusal
from kbert.serving.format.batching_file import Batching

BATCHING = Batching(4, 2000, 2, (1, 2, 4), True)


class Doubler:
    """Doubles numbers, and remembers the batches; waits for `gate` before the first."""

    def __init__(self) -> None:
        self.batches: list[list[float]] = []
        self.stops: list[CancellationManager] = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, signature, inputs, stop):
        self.stops.append(stop)
        self.gate.wait(5)
        self.batches.append(inputs["x"].reshape(-1).tolist())
        if (inputs["x"] < 0).any():
            stop.start_cancel()  # as TensorFlow does itself when a call fails
        if -1 in inputs["x"]:
            raise Refusal("INVALID_ARGUMENT", "minus one")
        if -2 in inputs["x"]:
            raise ZeroDivisionError("a secret")
        return {"y": 2 * inputs["x"]}


def run(work, batching=BATCHING):
    """Runs `work(queue, model)` on an event loop."""

    async def main():
        with ThreadPoolExecutor(2) as executor:
            model = Doubler()
            queue = BatchQueue(model, batching, executor)
            found = await asyncio.wait_for(work(queue, model), 60)
            await queue.idle()
            return found

    return asyncio.run(main())


def numbers(*values):
    return {"x": np.array(values, np.float32)}


async def together(queue, model, *requests, signature="f"):
    """All answers; the first request keeps the model busy until the others are there."""
    model.gate.clear()
    tasks = [asyncio.create_task(queue.answer(signature, one)) for one in requests]
    await asyncio.sleep(0.05)
    model.gate.set()
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_requests_that_wait_go_together_and_are_parted_again():
    async def work(queue, model):
        found = await together(queue, model, *(numbers(i, 10 * i) for i in (1, 2, 3)))
        return found, model.batches

    found, batches = run(work)
    assert [answer["y"].tolist() for answer in found] == [[2, 20], [4, 40], [6, 60]]
    # All three are there before the first batch is put together; at most four rows go into one.
    assert batches == [[1, 10, 2, 20], [3, 30]]


def test_a_lone_request_does_not_wait():
    slow = Batching(4, 60_000_000, 2, (1, 2, 4), True)

    async def work(queue, model):
        for i in range(3):
            assert (await queue.answer("f", numbers(i)))["y"].tolist() == [2 * i]
        return model.batches

    start = time.monotonic()
    assert run(work, slow) == [[0], [1], [2]]
    assert time.monotonic() - start < 5.0


def test_a_batch_waits_for_as_many_as_the_last_one_had_but_not_longer_than_it_may():
    patient = Batching(4, 300_000, 2, (1, 2, 4), True)

    async def work(queue, model):
        first = asyncio.create_task(queue.answer("f", numbers(0)))
        await asyncio.sleep(0.0)
        model.gate.clear()
        others = [asyncio.create_task(queue.answer("f", numbers(i))) for i in (1, 2)]
        await asyncio.sleep(0.02)
        late = asyncio.create_task(queue.answer("f", numbers(3)))
        model.gate.set()
        await asyncio.gather(first, *others)
        start = time.monotonic()
        await late
        return time.monotonic() - start

    assert run(work, patient) < 2.0


@pytest.mark.parametrize("bad, words", [(-1, "minus one"), (-2, "failed: ZeroDivisionError$")])
def test_only_the_request_at_fault_hears_of_it(bad, words):
    async def work(queue, model):
        return await together(queue, model, numbers(1), numbers(bad), numbers(3))

    one, refused, three = run(work)
    assert one["y"].tolist() == [2] and three["y"].tolist() == [6]
    with pytest.raises(Refusal, match=words):
        raise refused


def test_what_is_too_much_is_refused():
    async def work(queue, model):
        with pytest.raises(Refusal, match="Task size 5 is larger than maximum input batch size 4"):
            await queue.answer("f", numbers(1, 2, 3, 4, 5))
        return await together(queue, model, *(numbers(i) for i in range(16)))

    found = run(work)
    refused = [one for one in found if isinstance(one, Refusal)]
    # Two batches of four rows may wait.
    assert len(refused) == 8 and {one.code for one in refused} == {"UNAVAILABLE"}
    assert [one["y"].item() for one in found if isinstance(one, dict)] == [2 * i for i in range(8)]


def test_a_request_that_is_given_up_is_not_run():
    async def work(queue, model):
        model.gate.clear()
        first = asyncio.create_task(queue.answer("f", numbers(1)))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(queue.answer("f", numbers(2)))
        await asyncio.sleep(0.0)
        second.cancel()
        model.gate.set()
        await first
        await queue.idle()
        return model.batches

    assert run(work) == [[1]]


def test_a_batch_that_nobody_waits_for_is_stopped():
    async def work(queue, model):
        model.gate.clear()
        asked = [asyncio.create_task(queue.answer("f", numbers(i))) for i in (1, 2)]
        await asyncio.sleep(0.05)
        found = []
        for one in asked:
            one.cancel()
            await asyncio.sleep(0.01)
            found.append(model.stops[0].is_cancelled)
        model.gate.set()
        return found, (await queue.answer("f", numbers(3)))["y"].tolist()

    assert run(work) == ([False, True], [6])


@pytest.mark.parametrize("batching, most", [(BATCHING, 8), (None, 64)])
def test_a_request_that_is_given_up_gives_its_place_away(batching, most):
    async def work(queue, model):
        model.gate.clear()
        first = asyncio.create_task(queue.answer("f", numbers(1)))
        await asyncio.sleep(0.05)  # the model has it
        late = [asyncio.create_task(queue.answer("f", numbers(2))) for _ in range(most)]
        await asyncio.sleep(0.0)
        with pytest.raises(Refusal, match="is full"):
            await queue.answer("f", numbers(3))
        for one in late:
            one.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        last = asyncio.create_task(queue.answer("f", numbers(3)))
        await asyncio.sleep(0.0)
        model.gate.set()
        return (await first)["y"].tolist(), (await last)["y"].tolist(), model.batches

    assert run(work, batching) == ([2], [6], [[1], [3]])


def test_lengths_allow_padding_and_other_shapes_stay_apart():
    def tokens(*rows, lengths=True):
        found = {"x": np.array(rows, np.float32)}
        return {**found, "lengths": np.array([len(r) for r in rows])} if lengths else found

    async def work(queue, model, lengths):
        requests = [tokens([1, 2], lengths=lengths), tokens([3], lengths=lengths)]
        found = await together(queue, model, *requests)
        return [one["y"].tolist() for one in found], model.batches

    found, batches = run(lambda q, m: work(q, m, True))
    assert found == [[[2, 4]], [[6, 0]]] and batches == [[1, 2, 3, 0]]
    found, batches = run(lambda q, m: work(q, m, False))
    assert found == [[[2, 4]], [[6]]] and sorted(batches) == [[1, 2], [3]]


def test_texts_are_joined():
    def upper(signature, inputs, stop):
        return {"t": np.array([text.upper() for text in inputs["t"]], object)}

    async def main():
        with ThreadPoolExecutor(1) as executor:
            queue = BatchQueue(upper, BATCHING, executor)
            texts = [np.array([text], object) for text in (b"a", b"\xff\0", b"")]
            return await asyncio.gather(*(queue.answer("f", {"t": one}) for one in texts))

    found = asyncio.run(main())
    assert [one["t"].tolist() for one in found] == [[b"A"], [b"\xff\0"], [b""]]


def test_without_batching_each_goes_alone():
    async def work(queue, model):
        await together(queue, model, numbers(1), numbers(2, 3))
        return model.batches

    assert run(work, None) == [[1], [2, 3]]


def test_without_batching_requests_wait_however_many_rows_they_have():
    async def work(queue, model):
        found = await together(queue, model, *[numbers(*range(64))] * 5)
        with pytest.raises(Refusal, match="may have 1024 rows, and has 1025"):
            await queue.answer("f", numbers(*range(1025)))
        return found

    assert [len(one["y"]) for one in run(work, None)] == [64] * 5


def test_an_answer_without_rows_cannot_be_shared():
    def total(signature, inputs, stop):
        return {"sum": inputs["x"].sum()}

    async def main():
        with ThreadPoolExecutor(1) as executor:
            queue = BatchQueue(total, BATCHING, executor)
            asked = (queue.answer("f", numbers(i)) for i in (1, 2))
            return await asyncio.gather(*asked)

    assert [one["sum"] for one in asyncio.run(main())] == [1, 2]


def test_a_scalar_shares_no_batch():
    async def work(queue, model):
        scalar = {"x": np.array(3, np.float32)}
        found = await together(queue, model, scalar, numbers(1), dict(scalar))
        return [one["y"].tolist() for one in found], model.batches

    found, batches = run(work)
    assert found == [6, [2], 6] and sorted(batches) == [[1], [3], [3]]
