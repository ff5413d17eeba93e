"""Requests at a given rate, each answer compared with what the model says in process."""

import itertools
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from kbert.serving.client.client import Client
from kbert.serving.client.server_errors import DeadlineExceeded, Overloaded, Retries, ServerError

TOLERANCE = 1e-4


class Traffic:
    """Threads that ask a model again and again.

    Args:
        urls: Addresses, over REST and gRPC; threads take turns.
        model: The model's name.
        texts: What is asked.
        expected: For each set of weights, name of each output -> the answers to all texts. An
            answer is right where it is that of one of them, whole.
    """

    def __init__(
        self,
        urls: Sequence[str],
        model: str,
        texts: Sequence[str],
        expected: Sequence[Mapping[str, np.ndarray]],
    ) -> None:
        self.texts = texts
        self.expected = expected
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._clients = [Client(url, model, timeout=60, retries=Retries(most=0)) for url in urls]
        self._ticket = itertools.count()

    def run(self, seconds: float, threads: int, per_second: float | None = None) -> float:
        """Asks for a while.

        Args:
            seconds: How long.
            threads: How many ask.
            per_second: Requests that begin a second; as many as get answered if None.

        Returns:
            Answers a second.
        """
        start = time.monotonic()
        before = self.counts["answered"]

        def work(client: Client) -> None:
            while True:
                ticket = next(self._ticket)
                due = 0.0 if per_second is None else (ticket - first) / per_second
                if max(time.monotonic() - start, due) >= seconds:
                    return
                time.sleep(max(0.0, start + due - time.monotonic()))
                self._ask(client, ticket % len(self.texts))

        first = next(self._ticket) + 1
        clients = itertools.islice(itertools.cycle(self._clients), threads)
        with ThreadPoolExecutor(threads) as pool:
            for one in [pool.submit(work, client) for client in clients]:
                one.result()  # raises what went wrong in a thread
        return (self.counts["answered"] - before) / (time.monotonic() - start)

    def _ask(self, client: Client, place: int) -> None:
        try:
            found = client.predict({"text": [self.texts[place]]})
        except (Overloaded, DeadlineExceeded) as error:
            lost = "refused" in error.message.lower() or "connection" in error.message.lower()
            self.counts["lost: no connection" if lost else f"refused: {error.code}"] += 1
            return
        except ServerError as error:
            self.counts[f"lost: {error.code}"] += 1
            self.wrong.append(str(error))
            return
        self.counts["answered"] += 1
        if not any(self._is(found, answers, place) for answers in self.expected):
            self.counts["wrong"] += 1
            self.wrong.append(f"{self.texts[place]!r}: {found}")

    def _is(self, found: Mapping[str, Any], answers: Mapping[str, np.ndarray], place: int) -> bool:
        for name, wanted in answers.items():
            if wanted.dtype.kind == "f":
                if not np.allclose(found[name][0], wanted[place], atol=TOLERANCE):
                    return False
            elif np.any(found[name][0] != wanted[place]):
                return False
        return True
