"""ONNX Runtime behind the server that `kbert serve` is made of (uvicorn, Starlette).

    python -m peers.onnxruntime_server TASK ONNX_FOLDER

Requests are those of `kbert serve`; each is a batch of its own, in a thread of its own.
"""

import json
import sys
from pathlib import Path
from typing import Any

from peers.onnxruntime_network import Network
from peers.rest_process import serve
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


def main() -> None:
    """Serves until it is ended."""
    task, folder = sys.argv[1:]
    network = Network(Path(folder))

    def answer(inputs: dict[str, list[str]]) -> dict[str, Any]:
        if task == "classification":
            return {"label": network.classes(inputs["text"])}
        if task == "names":
            return {"entities": [network.entities(text) for text in inputs["text"]]}
        return {"answer": list(map(network.answer, inputs["question"], inputs["context"]))}

    async def predict(request: Request) -> JSONResponse:
        inputs = json.loads(await request.body())["inputs"]
        return JSONResponse({"outputs": await run_in_threadpool(answer, inputs)})

    serve(Starlette(routes=[Route(f"/v1/models/{task}:predict", predict, methods=["POST"])]))


if __name__ == "__main__":
    main()
