"""Batching of concurrent requests into one call of the model.

A request that comes alone is answered at once. While the model works, others queue; they share a
batch, up to `max_batch_size` rows, as soon as it is free. Where the previous batch held several
requests, the next one waits for as many, but no longer than `batch_timeout_micros`.
"""

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

import numpy as np
from tensorflow.python.eager.cancellation import CancellationManager  # has no public name

from kbert.local_server.limits import Refusal, check_rows, invalid
from kbert.serving.format.batching_file import LENGTHS, Batching
from kbert.serving.loading.row_batches import joined_batches

logger = logging.getLogger(__name__)
Arrays = Mapping[str, np.ndarray]
Answer = dict[str, np.ndarray]
# Its last argument, if there is one, stops the call when it is cancelled.
Run = Callable[[str, Arrays, CancellationManager | None], Answer]
# Queue limit of a model that is not batched, in requests.
_MOST_WAITING = 64
_Key = tuple[object, ...]


@dataclass(eq=False)
class _Waiting:
    key: _Key
    signature: str
    inputs: Arrays
    rows: int
    answer: "asyncio.Future[Answer]"
    since: float = field(default_factory=time.monotonic)


class BatchQueue:
    """The queue of one version of a model, which may or may not batch. For one event loop.

    `run` calls a signature of the model, and raises `Refusal` for the client's errors; `told` gets
    the rows of each batch, and the seconds that its oldest request waited.
    """

    def __init__(
        self,
        run: Run,
        batching: Batching | None,
        executor: Executor,
        told: Callable[[int, float], None] = lambda rows, seconds: None,
    ) -> None:
        self._run = run
        self._batching = batching
        self._executor = executor
        self._told = told
        self._waiting: list[_Waiting] = []
        # One batch at a time: TensorFlow parallelizes it over the cores by itself.
        self._worker: asyncio.Task[None] | None = None

    async def answer(self, signature: str, inputs: Arrays) -> Answer:
        """Answers one request, or refuses it.

        When cancelled, it leaves the queue; a batch that runs is stopped when nobody waits for it.
        The inputs are each (B, ...) with the same B; a request with a scalar runs alone.
        """
        rows = next((len(batch) for batch in inputs.values() if batch.ndim), 1)
        self._check_room(rows)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(self._key(signature, inputs), signature, inputs, rows, answer)
        self._waiting.append(waiting)
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        try:
            return await answer
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            raise

    async def idle(self) -> None:
        """Returns when all earlier requests are answered."""
        while self._worker is not None:
            await asyncio.wait({self._worker})

    def _check_room(self, rows: int) -> None:
        batching = self._batching
        if batching is None:
            check_rows(rows)
            full = len(self._waiting) >= _MOST_WAITING
        elif rows > batching.max_batch_size:
            most = batching.max_batch_size
            raise invalid(f"Task size {rows} is larger than maximum input batch size {most}")
        else:
            waiting = sum(max(1, one.rows) for one in self._waiting)
            full = waiting + rows > batching.max_enqueued_batches * batching.max_batch_size
        if full:
            raise Refusal(
                "UNAVAILABLE", "The batch scheduling queue to which this task was submitted is full"
            )

    def _key(self, signature: str, inputs: Arrays) -> _Key:
        """Returns a key; requests with the same key can share a batch."""
        if not all(batch.ndim for batch in inputs.values()):
            return (object(),)
        batching = self._batching
        if batching is not None and batching.pad_variable_length_inputs and LENGTHS in inputs:
            return (signature,)
        return (signature, *((name, inputs[name].shape[1:]) for name in sorted(inputs)))

    async def _work(self) -> None:
        """Answers the requests, a batch of the oldest one's kind at a time, until none is left."""
        held: dict[_Key, int] = {}  # kind -> requests of its last batch
        try:
            while self._waiting:
                key = self._waiting[0].key
                await self._gather(key, held.get(key, 1))
                batch = self._take(key)
                if batch:
                    await self._run_batch(batch)
                    held[key] = len(batch)
                waiting = {one.key for one in self._waiting}
                held = {key: count for key, count in held.items() if key in waiting}
        finally:
            self._worker = None

    async def _gather(self, key: _Key, expected: int) -> None:
        """Waits for as many requests as the last batch held, up to the batching timeout."""
        if self._batching is None:
            return
        end = self._waiting[0].since + 1e-6 * self._batching.batch_timeout_micros
        while (left := end - time.monotonic()) > 0:
            rows = [one.rows for one in self._waiting if one.key == key]
            if len(rows) >= expected or sum(rows) >= self._batching.max_batch_size:
                return
            await asyncio.sleep(min(left, 0.0005))

    def _take(self, key: _Key) -> list[_Waiting]:
        """Returns the requests of the next batch, oldest first, without cancelled ones."""
        most = 0 if self._batching is None else self._batching.max_batch_size
        batch: list[_Waiting] = []
        rows = 0
        for one in [one for one in self._waiting if one.key == key]:
            if batch and rows + one.rows > most:
                break
            self._waiting.remove(one)
            if not one.answer.done():
                batch.append(one)
                rows += one.rows
        return batch

    async def _run_batch(self, batch: list[_Waiting]) -> None:
        self._told(sum(one.rows for one in batch), time.monotonic() - batch[0].since)
        loop, stop = asyncio.get_running_loop(), CancellationManager()

        def nobody_waits() -> bool:
            return all(one.answer.cancelled() for one in batch)

        def gone(answer: "asyncio.Future[Answer]") -> None:
            if nobody_waits():
                stop.start_cancel()

        for one in batch:
            one.answer.add_done_callback(gone)
        try:
            inputs, rows = batch[0].inputs, [one.rows for one in batch]
            if len(batch) > 1:
                inputs = {k: joined_batches([one.inputs[k] for one in batch]) for k in inputs}
            run = functools.partial(self._run, batch[0].signature, inputs, stop)
            answers = await loop.run_in_executor(self._executor, _run_split, run, rows)
        except Exception as error:
            if nobody_waits():  # not by `stop`, which TensorFlow cancels too when a call fails
                return
            if len(batch) > 1:
                # Only the faulty request gets the error.
                for one in batch:
                    if not one.answer.done():
                        await self._run_batch([one])
                return
            if not isinstance(error, Refusal):
                logger.error("The model failed.", exc_info=error)
                error = Refusal("INTERNAL", f"The model failed: {type(error).__name__}")
            if not batch[0].answer.done():
                batch[0].answer.set_exception(error)
            return
        for one, answer in zip(batch, answers, strict=True):
            if not one.answer.done():
                one.answer.set_result(answer)


def _run_split(run: Callable[[], Answer], rows: Sequence[int]) -> list[Answer]:
    outputs = run()
    if len(rows) == 1:
        return [outputs]
    ends = np.cumsum(rows)
    for name, batch in outputs.items():
        if batch.ndim == 0 or len(batch) != ends[-1]:
            raise ValueError(f"{name!r} has the shape {batch.shape} for {ends[-1]} rows")
    return [
        {name: batch[end - count : end] for name, batch in outputs.items()}
        for count, end in zip(rows, ends)
    ]
