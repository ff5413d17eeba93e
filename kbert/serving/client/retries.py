"""Retries of requests with exponential backoff, never past a deadline."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kbert.serving.client.server_errors import DeadlineExceeded, ServerError

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Retries:
    """A policy for repeating requests.

    Only transient errors are retried: a server that refuses more or cannot be reached. Requests do
    not change a server's state, so repeating them does no harm.

    Args:
        most: The most retries after the first attempt.
        pause: Seconds before the second attempt; each further pause is twice as long. A pause is
            randomly between half of it and all of it, so that many clients do not come back at the
            same moment.
        longest_pause: The longest pause, in seconds.

    Raises:
        ValueError: A number is negative.
    """

    most: int = 4
    pause: float = 0.1
    longest_pause: float = 5.0

    def __post_init__(self) -> None:
        for name in ("most", "pause", "longest_pause"):
            if getattr(self, name) < 0:
                raise ValueError(
                    f"`{name}` must not be negative. Received: {name}={getattr(self, name)}"
                )

    def run(self, ask: Callable[[float], Answer], deadline: float, target: str) -> Answer:
        """Repeats a request until there is an answer.

        Args:
            ask: Takes the seconds that are left, and answers or raises a `ServerError`.
            deadline: Time on the clock of `time.monotonic`.
            target: Address of the model, for the error.

        Returns:
            The answer.

        Raises:
            ServerError: The last error; `DeadlineExceeded` where no time was left for a request.
        """
        for attempt in range(self.most + 1):
            left = deadline - time.monotonic()
            if left <= 0:
                raise DeadlineExceeded("DEADLINE_EXCEEDED", "no time was left to ask", target)
            try:
                return ask(left)
            except ServerError as error:
                pause = min(self.longest_pause, self.pause * 2**attempt)
                pause *= random.uniform(0.5, 1.0)
                in_time = time.monotonic() + pause < deadline
                if not error.may_pass or attempt == self.most or not in_time:
                    raise
                time.sleep(pause)
        raise DeadlineExceeded("DEADLINE_EXCEEDED", "no time was left to ask", target)
