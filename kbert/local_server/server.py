"""The local server: both APIs on one event loop, in a thread of its own."""

import asyncio
import errno
import logging
import os
import socket
import threading
from contextlib import AbstractContextManager, suppress
from typing import Any

import uvicorn

from kbert.local_server.grpc_service import start_grpc
from kbert.local_server.limits import NO_PORT, Gate, Metrics, ServerOptions
from kbert.local_server.model_store import ModelStore
from kbert.local_server.rest_app import RestApp, TimedConnection
from kbert.local_server.web_page import page_routes

logger = logging.getLogger(__name__)
# Names of the loopback interface; a request under another one is a web page's DNS rebinding.
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_HOSTS = frozenset(("127.0.0.1", "[::1]", "localhost"))
# Seconds between two requests of a connection. The shorter, the more often a client writes to one
# that is just being closed.
_KEEP_ALIVE = 75


class LocalServer(AbstractContextManager["LocalServer"]):
    """A server that runs while the block does. A context manager.

    It starts to listen when the models are loaded; at the end it answers the accepted requests. For
    `base` see `served_folders`. Raises FileNotFoundError or ValueError if there is no model, or
    none that can be loaded, and OSError if a port is taken.
    """

    def __init__(
        self, base: str | os.PathLike[str], options: ServerOptions = ServerOptions()
    ) -> None:
        self.options = options
        self.metrics = Metrics()
        self.store = ModelStore(base, self.metrics, options.limits.max_concurrency)
        self.rest_url = ""
        self.grpc_url = ""
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="kbert-server", daemon=True)

    def __enter__(self) -> "LocalServer":
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    @property
    def alive(self) -> bool:
        """Returns whether it runs; False once it has ended, by whatever cause."""
        return self._thread.is_alive()

    def __exit__(self, *error: object) -> None:
        if self._loop is not None and self._end is not None:
            with suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        if self._failure is not None and error[0] is None:
            raise self._failure

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failure = error
            if self._started.is_set():
                logger.exception("The server has ended.")
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        options, gate = self.options, Gate(self.options.limits)
        with listening(options.host, options.rest_port) as listener:
            if options.grpc_port > 0:  # which gRPC takes when the models are loaded, minutes later
                _check_grpc_port(options)
            await self.store.refresh()
            self._check_ready()
            listener.listen(1024)
            self.rest_url = f"http://{_address(options.host, listener.getsockname()[1])}"
            grpc_server = None
            if options.grpc_port != NO_PORT:
                grpc_server = await start_grpc(self.store, gate, options.host, options.grpc_port)
                self.grpc_url = f"grpc://{_address(options.host, grpc_server.port)}"
            http_server = self._http_server(gate)
            http = asyncio.create_task(http_server.serve([listener]))
            watch = asyncio.create_task(self.store.watch(options.poll_seconds))
            while not http_server.started and not http.done():
                await asyncio.sleep(0.005)
            self._started.set()
            ended = asyncio.create_task(self._end.wait())
            await asyncio.wait({ended, http}, return_when=asyncio.FIRST_COMPLETED)
            watch.cancel()
            http_server.should_exit = True
            if grpc_server is not None:
                await grpc_server.stop(options.limits.timeout)
            await http
            with suppress(asyncio.CancelledError):
                await watch
            await self.store.close()

    def _check_ready(self) -> None:
        if any(model.ready for model in self.store.models.values()):
            return
        told = [
            f"{name}, version {number}: {state.error}"
            for name, model in self.store.models.items()
            for number, state in model.states.items()
        ]
        listed = "; ".join(told) or "no version with a saved_model.pb"
        raise ValueError(f"`base` must hold a model that can be loaded. Received: {listed}")

    def _http_server(self, gate: Gate) -> uvicorn.Server:
        options = self.options
        hosts = _HOSTS if options.host in _LOOPBACK else None
        routes: Any = ()
        if options.web:
            routes = page_routes(self.store, options.limits.max_request_bytes)
        config = uvicorn.Config(
            RestApp(self.store, gate, hosts, routes).app,
            http=TimedConnection,
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=int(options.limits.timeout) + 1,
            # Limits connections, most of which are idle; the gate limits requests.
            limit_concurrency=8 * options.limits.max_concurrency + 64,
        )
        return uvicorn.Server(config)


def _check_grpc_port(options: ServerOptions) -> None:
    if options.grpc_port == options.rest_port:
        raise ValueError(
            "`grpc_port` (--grpc-port) must be another than `rest_port` (--rest-port). "
            f"Received: {options.grpc_port} for both"
        )
    listening(options.host, options.grpc_port, "gRPC").close()


def listening(host: str, port: int, protocol: str = "REST") -> socket.socket:
    """Returns a socket that is bound, and does not listen yet; with port 0 to a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once (TCP_NODELAY) only on sockets with the TCP protocol number: without it,
    # the body of an answer waits some 40 ms for the client to acknowledge the head.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if isinstance(error, socket.gaierror):
            words = f"The host {host} (--host) cannot be used: {error.strerror or error}"
        else:
            words = f"The {protocol} port {port} of {host} cannot be used: "
            words += error.strerror or str(error)
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            kind = protocol.lower()
            words += f". Choose another `{kind}_port` (--{kind}-port); 0 picks a free one"
            words += ", -1 does without" if protocol == "gRPC" else ""
        raise OSError(words) from error
    return listener


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
