"""An application in uvicorn, on a free port of this machine."""

import json
import socket
from typing import Any

import uvicorn


def serve(app: Any) -> None:
    """Serves until the process is ended; prints the address in one line when it listens."""
    # As sockets of asyncio's own making: one of `create_server` would let answers wait 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    print(json.dumps({"rest": address, "grpc": ""}), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
