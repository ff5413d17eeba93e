"""Batching of concurrent requests into one call of the model.

A request that comes alone is answered at once. While the model works, others queue; they share a
batch, up to `max_batch_size` rows, as soon as it is free. Where the previous batch held several
requests, the next one waits for as many, but no longer than `batch_timeout_micros`.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

import numpy as np

from kbert.local_server.engine.limits import Refusal
from kbert.serving.format.batching_file import LENGTHS, Batching
from kbert.serving.loading.row_batches import joined_batches

logger = logging.getLogger(__name__)
Arrays = Mapping[str, np.ndarray]
Answer = dict[str, np.ndarray]
Run = Callable[[str, Arrays], Answer]
# Queue limit of a model that is not batched, in requests.
_MOST_WAITING = 64
_Key = tuple[object, ...]


@dataclass(eq=False)
class _Waiting:
    inputs: Arrays
    rows: int
    answer: "asyncio.Future[Answer]"
    since: float = field(default_factory=time.monotonic)


class BatchQueue:
    """The queue of one version of a model. For one event loop.

    Args:
        run: Calls a signature of the model; raises `Refusal` for the client's errors.
        batching: Batching parameters; None where each request is answered alone.
        executor: Threads in which the model runs.
        told: Called with the rows of each batch, and the seconds that its oldest request waited.
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
        # One batch at a time: TensorFlow parallelizes it over the cores by itself.
        self._free = asyncio.Lock()
        self._queues: dict[_Key, deque[_Waiting]] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._waiting_rows = 0

    async def answer(self, signature: str, inputs: Arrays) -> Answer:
        """Answers one request; when cancelled, it leaves the queue.

        Args:
            signature: Name of a signature of the model.
            inputs: Its inputs, each (B, ...) with the same B. A request with a scalar runs alone.

        Raises:
            Refusal: It holds more rows than a batch, the queue is full, or the model refuses it.
        """
        rows = next((len(batch) for batch in inputs.values() if batch.ndim), 1)
        self._check_room(rows)
        waiting = _Waiting(inputs, rows, asyncio.get_running_loop().create_future())
        key = self._key(signature, inputs)
        if not all(batch.ndim for batch in inputs.values()):
            key = (*key, object())
        if key not in self._queues:
            self._queues[key] = deque()
            worker = asyncio.create_task(self._work(signature, key))
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)
        self._queues[key].append(waiting)
        self._waiting_rows += max(1, rows)
        try:
            return await waiting.answer
        except asyncio.CancelledError:
            queue = self._queues.get(key)
            if queue is not None and waiting in queue:
                queue.remove(waiting)
                self._waiting_rows -= max(1, rows)
            raise

    async def idle(self) -> None:
        """Returns when all earlier requests are answered."""
        while self._workers:
            await asyncio.wait(set(self._workers))

    def _check_room(self, rows: int) -> None:
        batching = self._batching
        if batching is None:
            full = self._waiting_rows >= _MOST_WAITING
        elif rows > batching.max_batch_size:
            raise Refusal(
                "INVALID_ARGUMENT",
                f"Task size {rows} is larger than maximum input batch size "
                f"{batching.max_batch_size}",
            )
        else:
            most = batching.max_enqueued_batches * batching.max_batch_size
            full = self._waiting_rows + rows > most
        if full:
            raise Refusal(
                "UNAVAILABLE",
                "The batch scheduling queue to which this task was submitted is full",
            )

    def _key(self, signature: str, inputs: Arrays) -> _Key:
        """Returns a key; requests with the same key can share a batch."""
        if self._batching is not None and self._batching.pad_variable_length_inputs:
            if LENGTHS in inputs:
                return (signature,)
        return (signature, *((name, inputs[name].shape[1:]) for name in sorted(inputs)))

    async def _work(self, signature: str, key: _Key) -> None:
        """Answers the requests of a queue, until it is empty."""
        queue = self._queues[key]
        last = 1
        try:
            while queue:
                async with self._free:
                    await self._gather(queue, last)
                    batch = self._take(queue)
                    if batch:
                        await self._run_batch(signature, batch)
                        last = len(batch)
        finally:
            del self._queues[key]

    async def _gather(self, queue: deque[_Waiting], expected: int) -> None:
        """Waits for as many requests as the last batch held, up to the batching timeout."""
        if self._batching is None or not queue:
            return
        end = queue[0].since + 1e-6 * self._batching.batch_timeout_micros
        while len(queue) < expected and (left := end - time.monotonic()) > 0:
            if sum(one.rows for one in queue) >= self._batching.max_batch_size:
                return
            await asyncio.sleep(min(left, 0.0005))

    def _take(self, queue: deque[_Waiting]) -> list[_Waiting]:
        """Returns the requests of the next batch, oldest first, without cancelled ones."""
        most = 0 if self._batching is None else self._batching.max_batch_size
        batch: list[_Waiting] = []
        rows = 0
        while queue and (not batch or rows + queue[0].rows <= most):
            one = queue.popleft()
            self._waiting_rows -= max(1, one.rows)
            if not one.answer.done():
                batch.append(one)
                rows += one.rows
        return batch

    async def _run_batch(self, signature: str, batch: list[_Waiting]) -> None:
        self._told(sum(one.rows for one in batch), time.monotonic() - batch[0].since)
        loop = asyncio.get_running_loop()
        try:
            inputs = _joined([one.inputs for one in batch])
            answers = await loop.run_in_executor(
                self._executor, _run_split, self._run, signature, inputs, [b.rows for b in batch]
            )
        except Exception as error:
            if len(batch) > 1:
                # Only the faulty request gets the error.
                for one in batch:
                    if not one.answer.done():
                        await self._run_batch(signature, [one])
                return
            refusal = error if isinstance(error, Refusal) else _failure(error)
            if not batch[0].answer.done():
                batch[0].answer.set_exception(refusal)
            return
        for one, answer in zip(batch, answers, strict=True):
            if not one.answer.done():
                one.answer.set_result(answer)


def _joined(requests: Sequence[Arrays]) -> Arrays:
    if len(requests) == 1:
        return requests[0]
    return {name: joined_batches([one[name] for one in requests]) for name in requests[0]}


def _run_split(run: Run, signature: str, inputs: Arrays, rows: Sequence[int]) -> list[Answer]:
    """Runs a batch, and splits the outputs by request."""
    outputs = run(signature, inputs)
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


def _failure(error: Exception) -> Refusal:
    logger.error("The model failed.", exc_info=error)
    return Refusal("INTERNAL", f"The model failed: {type(error).__name__}")
