"""`kbert serve`."""

import gc
import logging
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from kbert.cli.frame.errors import reported
from kbert.cli.frame.results import write_line


@reported
def serve(
    base: Annotated[
        Path,
        Argument(
            help="A model's folder, a folder of models, or a model.config.", metavar="BASE"
        ),
    ],
    host: Annotated[str, Option(help="The address to listen at.")] = "127.0.0.1",
    rest_port: Annotated[int, Option(help="REST's port; 0 picks a free one.")] = 8501,
    grpc_port: Annotated[
        int, Option(help="gRPC's port; 0 picks a free one, -1 does without.")
    ] = 8500,
    web: Annotated[bool, Option("--web", help="Serve a page to try the models.")] = False,
    poll_seconds: Annotated[
        float, Option(help="The pause between two looks for new versions.")
    ] = 1.0,
    max_request_bytes: Annotated[int, Option(help="The most bytes of a request.")] = 2**23,
    max_concurrency: Annotated[
        int, Option(help="The most requests at a time; more are refused.")
    ] = 128,
    timeout: Annotated[float, Option(help="Seconds for one request.")] = 30.0,
) -> None:
    """Serve exports on this machine, as TensorFlow Serving does: for development and tests.

    REST and gRPC, new versions without a stop, batches of requests that come together, metrics,
    health. In production, run TensorFlow Serving.

    Where it listens is a line of JSON on stdout. Ctrl-C or SIGTERM ends it in order.

    Examples:

      kbert serve exports

      kbert serve exports/topics --web

      kbert serve exports/model.config --rest-port 0 --grpc-port 0
    """
    _end_at_sigterm()
    from kbert.local_server.limits import Limits, ServerOptions

    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.WARNING)
    logging.getLogger("kbert").setLevel(logging.INFO)
    limits = Limits(max_request_bytes, max_concurrency, timeout)
    options = ServerOptions(host, rest_port, grpc_port, web, poll_seconds, limits)
    if not base.exists():
        raise FileNotFoundError(f"`BASE` must be there. Received: {str(base)!r}")
    from kbert.local_server.server import LocalServer
    stopped = threading.Event()
    gc.freeze()  # objects of now stay: garbage collection after a change of versions skips them
    with LocalServer(base, options) as server:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        page = f"{server.rest_url}/" if web else None
        urls = {"rest": server.rest_url, "grpc": server.grpc_url or None, "page": page}
        write_line({**urls, "models": sorted(server.store.models)})
        sys.stdout.flush()
        while server.alive and not stopped.wait(1.0):
            pass
        sys.stderr.write("Ending: requests that were accepted are answered.\n")
    sys.stderr.write("Ended.\n")


def _end_at_sigterm() -> None:
    """Ends the process in order while it loads; the first one of a container would go on."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
