"""The REST API of TF Serving, and the local server's health and metrics over HTTP.

Sources: tensorflow/serving, `g3doc/api_rest.md`, `http_rest_api_handler.cc`.
"""

import asyncio
import fcntl
import functools
import logging
import math
import re
import sys
import termios
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import h11
from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from kbert.local_server.limits import CONTENT_TYPE, LARGE_BYTES, Gate, Refusal, in_thread, invalid
from kbert.local_server.model_store import ModelStore, check_inputs, signature_of
from kbert.local_server.rest_messages import answer_of, inputs_of, parsed, read_body
from kbert.local_server.served_model import LoadedVersion, status_of
from kbert.serving.export.base_files import METRICS_PATH

logger = logging.getLogger(__name__)
_PATH = re.compile(
    r"/v1/models/(?P<model>[^/:]+)"
    r"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/:]+))?"
    r"(?::(?P<verb>predict|classify|regress)|(?P<metadata>/metadata))?"
)
_LARGEST_VERSION = 2**63 - 1
# Larger answers are converted in a thread.
_LARGE_CELLS = 5000
_Handler = Callable[[Request], Awaitable[Response]]


class TimedConnection(H11Protocol):
    """One connection of HTTP/1.1, with timeouts of the request's head and of writing."""

    head_timeout, write_timeout = 10.0, 30.0  # seconds

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._ended = False  # whether the client has closed its side

    def connection_made(self, transport: Any) -> None:
        """Starts to wait for the head of a request."""
        super().connection_made(transport)
        self._start("head", self.head_timeout)

    def data_received(self, data: bytes) -> None:
        """Takes received data, and keeps waiting while no head is complete."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop("head")
        elif self.cycle and self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            # A body has ended whose answer came first. uvicorn stopped its timer as data came.
            self._stop("head")
            if self.timeout_keep_alive_task is None and not self.transport.is_closing():
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )
        else:
            self._start("head", self.head_timeout)

    # asyncio reads whether to keep the transport; uvicorn's own always closes it, and says None.
    def eof_received(self) -> bool:  # type: ignore[override]
        """Keeps the connection for the answer to a request that has arrived as a whole."""
        cycle = self.cycle
        self._ended = True
        return cycle is not None and not cycle.more_body and not cycle.response_complete

    def on_response_complete(self) -> None:
        """Waits for the rest of a head or of the answer, or ends the connection."""
        super().on_response_complete()
        if self.cycle is not None and self.cycle.response_complete:
            if self._ended:
                self.transport.close()
            elif self.conn.trailing_data[0]:
                self._start("head", self.head_timeout)
        self._wait_for_reader()

    def send_400_response(self, msg: str) -> None:
        """Answers what is no HTTP, or ends the connection where another answer has begun."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
            self._wait_for_reader()
        else:
            self.transport.abort()

    def _should_upgrade(self) -> bool:
        return False  # uvicorn would advise in the log to install WebSockets

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops both timers."""
        self._stop("head")
        self._stop("write")
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Starts the write timer, as the client reads too slowly."""
        super().pause_writing()
        self._wait_for_reader()

    def resume_writing(self) -> None:
        """Stops the write timer, as the client has caught up, unless this was the last part."""
        super().resume_writing()
        self._wait_for_reader()

    def _untaken(self) -> int:
        """Returns the bytes that the client has not taken; 0 if the system has them all.

        The system takes more only when a third of its own part is gone: megabytes, which a slow
        client takes in minutes.
        """
        waiting = self.transport.get_write_buffer_size()
        if waiting:
            connected = self.transport.get_extra_info("socket")
            with suppress(OSError):  # not every system counts them
                counted = fcntl.ioctl(connected.fileno(), termios.TIOCOUTQ, bytes(4))
                waiting += int.from_bytes(counted, sys.byteorder)
        return waiting

    def _wait_for_reader(self, left: float = math.inf) -> None:
        """Waits for a slow client as long as it goes on taking its answer.

        Not while more may be written at any time: the end of an answer, or a pause, waits again.
        """
        self._stop("write")
        now = self._untaken()
        whole = self.cycle is None or self.cycle.response_complete or self.transport.is_closing()
        if not now or not (whole or self.flow.write_paused):
            return
        if now < left:
            self._start("write", self.write_timeout, lambda: self._wait_for_reader(now))
        else:
            self.transport.abort()

    def _start(self, kind: str, seconds: float, then: Callable[[], None] | None = None) -> None:
        # A transport that is closing still writes the rest of an answer, and reads nothing.
        if kind not in self._timers and (kind == "write" or not self.transport.is_closing()):
            self._timers[kind] = self.loop.call_later(seconds, then or self.transport.abort)

    def _stop(self, kind: str) -> None:
        timer = self._timers.pop(kind, None)
        if timer is not None:
            timer.cancel()


class RestApp:
    """The routes of the server, with further ones such as those of the web page.

    Only `hosts` are accepted as names of the server, so that no web page can reach it under a name
    of its own (DNS rebinding); None accepts any.
    """

    def __init__(
        self,
        store: ModelStore,
        gate: Gate,
        hosts: frozenset[str] | None = None,
        routes: Sequence[Route] = (),
    ) -> None:
        self._store = store
        self._gate = gate
        self._hosts = hosts
        own = {"/healthz": self._alive, "/readyz": self._ready, METRICS_PATH: self._metrics}
        every = [Route(path, self._guarded(handler)) for path, handler in own.items()]
        every += [Route(one.path, self._guarded(one.endpoint, _is_link)) for one in routes]
        self.app = Starlette(routes=every, exception_handlers={HTTPException: _not_allowed})
        model = self._guarded(self._model)

        async def other(scope: Any, receive: Any, send: Any) -> None:
            request = Request(scope, receive)
            await (await model(request))(scope, receive, send)

        # Not a route, which would know some methods and paths only, and answer others by itself.
        self.app.router.default = other

    def _guarded(
        self, handler: _Handler, allowed: Callable[[Request], bool] = lambda request: False
    ) -> _Handler:
        """Wraps a handler: refusals become JSON, and other errors a message without details.

        `allowed` returns whether a request from another web page is allowed.
        """

        @functools.wraps(handler)
        async def guarded(request: Request) -> Response:
            try:
                self._check_origin(request, allowed)
                return await handler(request)
            except Refusal as refusal:
                return _refused(refusal)
            except Exception:
                logger.exception("A request failed.")
                return _refused(Refusal("INTERNAL", "The server failed; its log tells why"))

        return guarded

    def _check_origin(self, request: Request, allowed: Callable[[Request], bool]) -> None:
        host = request.headers.get("host", "").lower()
        if self._hosts is not None and re.sub(r":[0-9]*$", "", host) not in self._hosts:
            words = f"The server is not to be asked as {host[:100]!r}"
            raise Refusal("PERMISSION_DENIED", words, 403)
        if request.headers.get("sec-fetch-site") == "cross-site" and not allowed(request):
            raise Refusal("PERMISSION_DENIED", "Other web pages may not ask this server", 403)

    async def _alive(self, request: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def _ready(self, request: Request) -> Response:
        waiting = [name for name, model in self._store.models.items() if not model.ready]
        if waiting or not self._store.models:
            raise Refusal("UNAVAILABLE", f"Not ready: {waiting or 'there is no model'}")
        return JSONResponse({"status": "ready", "models": sorted(self._store.models)})

    async def _metrics(self, request: Request) -> Response:
        return Response(self._store.metrics.page(), headers={"content-type": CONTENT_TYPE})

    async def _model(self, request: Request) -> Response:
        found = _PATH.fullmatch(request.scope["path"])
        verb = found["verb"] if found else None
        if found is None or request.method not in (("POST",) if verb else ("GET", "HEAD")):
            path = request.scope["path"][:200]
            words = f"Malformed request: {request.method} {path}"
            raise Refusal("INVALID_ARGUMENT", words, None if path.startswith("/v1/") else 404)
        digits = (found["version"] or "").lstrip("0")
        # Python does not parse numbers of thousands of digits.
        if len(digits) > len(str(_LARGEST_VERSION)) or int(digits or 0) > _LARGEST_VERSION:
            raise invalid("Failed to convert version to numeric.")
        version = int(digits or 0) if found["version"] else None
        name, label = found["model"], found["label"]
        if verb == "predict":
            return await self._predict(request, name, version, label)
        if verb:
            raise Refusal("UNIMPLEMENTED", f"{verb} is left out of this server: ask with predict")
        model = self._store.model(name)
        if found["metadata"]:
            return JSONResponse(_metadata(name, model.pick(version, label)))
        return JSONResponse({"model_version_status": status_of(model, version, label)})

    async def _predict(
        self, request: Request, name: str, number: int | None, label: str | None
    ) -> Response:
        with self._store.metrics.request("REST") as counted, self._gate.admitted() as deadline:
            if name in self._store.models:
                counted.model = name
            body = await read_body(request, self._gate.limits.max_request_bytes, deadline)
            large = len(body) > LARGE_BYTES
            asked = await in_thread(large, parsed, body)
            version = self._store.model(name).pick(number, label)
            signature = signature_of(version, asked.signature)
            inputs = await in_thread(large, inputs_of, asked, signature)
            check_inputs(signature, inputs)
            answer = await self._store.answer(version, asked.signature, inputs, deadline)
            large = sum(batch.size for batch in answer.values()) > _LARGE_CELLS
            content = await in_thread(large, answer_of, answer, asked.in_rows)
        return Response(content, media_type="application/json")


async def _not_allowed(request: Request, error: Any) -> Response:
    """Answers another method of a route."""
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def _refused(refusal: Refusal) -> Response:
    headers = {"retry-after": "1"} if refusal.may_pass else {}
    if refusal.status in (408, 413):
        headers["connection"] = "close"
    return JSONResponse({"error": refusal.message}, refusal.status, headers)


def _is_link(request: Request) -> bool:
    """Returns whether a user follows a link to the page; the linking page cannot read it."""
    return request.headers.get("sec-fetch-mode") == "navigate"


def _metadata(name: str, version: LoadedVersion) -> dict[str, Any]:
    """Returns the metadata as the JSON of `get_model_metadata.proto`."""
    described = {
        signature: json_format.MessageToDict(
            definition, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        for signature, definition in sorted(version.model.meta_graph.signature_def.items())
    }
    spec = {"name": name, "signature_name": "", "version": str(version.number)}
    return {"model_spec": spec, "metadata": {"signature_def": {"signature_def": described}}}
