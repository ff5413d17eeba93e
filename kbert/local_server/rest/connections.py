"""Connections of clients that are too slow, closed.

uvicorn limits the time between two requests, not the time in which a request's head arrives, nor
the time in which a client takes its answer. Both are held here. The time of a body is held where it
is read (`request_body`).
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# Seconds.
HEAD_TIMEOUT = 10.0
WRITE_TIMEOUT = 30.0


class TimedConnection(H11Protocol):
    """One connection of HTTP/1.1, with its clock."""

    head_timeout = HEAD_TIMEOUT
    write_timeout = WRITE_TIMEOUT

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begins to wait for the head of a request."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Takes what came, and waits on where no head is complete yet."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_head_timer()
        else:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops both clocks."""
        self._stop_head_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client takes less than it is sent: waits for it."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.write_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._stop_write_timer()
        super().resume_writing()

    def _wait_for_head(self) -> None:
        if self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self.head_timeout, self.transport.abort)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
