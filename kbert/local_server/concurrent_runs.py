"""Concurrent calls of a model whose graph batches them by itself.

Each call has a thread, and the graph joins those that meet (`serving/export/request_batching`).
Large requests wait for each other, so that their number does not multiply the memory.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from tensorflow.python.eager.cancellation import CancellationManager  # has no public name

from kbert.local_server.batch_queue import Answer, Arrays, Run
from kbert.local_server.limits import LARGE_BYTES, Refusal, check_rows

logger = logging.getLogger(__name__)
# Bytes of all large requests that run at a time; a larger one runs without other large ones.
_MOST_BYTES = 4 * 2**20


class ConcurrentRuns:
    """The calls of one version of a model. For one event loop; see also `BatchQueue`.

    `runs_alone` says whether nothing but a request itself would be stopped with its call.
    """

    def __init__(
        self,
        run: Run,
        executor: Executor,
        told: Callable[[int, float], None] = lambda rows, seconds: None,
        runs_alone: Callable[[str, Arrays], bool] = lambda signature, inputs: False,
    ) -> None:
        self._run = run
        self._runs_alone = runs_alone
        self._executor = executor
        self._told = told
        self._running: set[asyncio.Future[Answer]] = set()
        self._bytes = 0
        self._turn = asyncio.Lock()  # which is fair: large requests start in their order
        self._freed = asyncio.Event()

    async def answer(self, signature: str, inputs: Arrays) -> Answer:
        """Answers one request, or refuses it.

        When cancelled, a call that has not begun is not made, and one that runs alone is stopped;
        one that shares a batch goes on in its thread, for those that share it.
        """
        since = time.monotonic()
        rows = next((len(batch) for batch in inputs.values() if batch.ndim), 1)
        check_rows(rows)
        size = sum(map(_bytes, inputs.values()))
        if size <= LARGE_BYTES:
            size = 0
        else:
            async with self._turn:
                while self._bytes and self._bytes + size > _MOST_BYTES:
                    self._freed.clear()
                    await self._freed.wait()
                self._bytes += size

        stop = CancellationManager() if self._runs_alone(signature, inputs) else None

        def work() -> Answer:
            self._told(rows, time.monotonic() - since)
            return self._run(signature, inputs, stop)

        call = self._executor.submit(work)
        running = asyncio.wrap_future(call)
        self._running.add(running)
        running.add_done_callback(lambda done: self._end(done, size))
        try:
            return await asyncio.shield(running)
        except Refusal:
            raise
        except asyncio.CancelledError:
            if not call.cancel() and stop is not None:
                stop.start_cancel()
            raise
        except Exception as error:
            logger.error("The model failed.", exc_info=error)
            raise Refusal("INTERNAL", f"The model failed: {type(error).__name__}") from error

    async def idle(self) -> None:
        """Returns when all earlier requests are answered."""
        while self._running:
            await asyncio.wait(self._running)

    def _end(self, done: "asyncio.Future[Answer]", size: int) -> None:
        self._running.discard(done)
        self._bytes -= size
        self._freed.set()
        if not done.cancelled():
            done.exception()  # read here, as the one who asked may have gone


def _bytes(batch: Any) -> int:
    if batch.dtype.kind != "O":
        return int(batch.nbytes)
    return sum(len(one) for one in batch.ravel())
