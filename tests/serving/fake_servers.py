"""Small servers that answer as TF Serving's documents say, for the tests of what asks one.

REST: tensorflow/serving, `g3doc/api_rest.md`. gRPC: the official messages and services. The model
behind both gives for each text its length, a label, and one score a letter of the longest text.
"""

import json
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import tensorflow as tf

MODEL = "topics"
VERSION = 3
# Name of each signature -> its inputs and outputs, each with a type and a rank.
SIGNATURES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "serving_default": (
        {"text": ("DT_STRING", 1)},
        {
            "label": ("DT_STRING", 1),
            "score": ("DT_FLOAT", 1),
            "scores": ("DT_FLOAT", 2),
            "labels": ("DT_STRING", 2),
        },
    ),
    "length": ({"text": ("DT_STRING", 1)}, {"length": ("DT_INT32", 1)}),
    "letters": ({"text": ("DT_STRING", 1)}, {"letters": ("DT_INT32", 2), "n": ("DT_INT32", 1)}),
}


def answer(signature: str, texts: list[bytes]) -> dict[str, np.ndarray]:
    """What the model says, by hand."""
    lengths = np.array([len(text) for text in texts], np.int32)
    if signature == "length":
        return {"length": lengths}
    if signature == "letters":
        letters = np.zeros((len(texts), max(lengths, default=0)), np.int32)
        for row, text in zip(letters, texts):
            row[: len(text)] = list(text)
        return {"letters": letters, "n": lengths}
    scores = np.array([[0.25, 0.75] if n > 5 else [0.875, 0.125] for n in lengths], np.float32)
    labels = np.array([[b"short", b"long"]] * len(texts), object).reshape(-1, 2)
    best = scores.reshape(-1, 2).argmax(1)
    return {
        "label": np.array([labels[i, b] for i, b in enumerate(best)], object),
        "score": scores.reshape(-1, 2).max(1, initial=0.0),
        "scores": scores.reshape(-1, 2),
        "labels": labels,
    }


class Model:
    """The model, what it was asked, and how it misbehaves.

    Attributes:
        rows: Rows of each request that was answered.
        refusals: What the next requests get instead of an answer: numbers of HTTP's statuses.
        delay: Seconds before each answer.
    """

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.refusals: list[int] = []
        self.delay = 0.0
        self.lock = threading.Lock()

    def refusal(self) -> int | None:
        """The status of the next refusal, or None."""
        with self.lock:
            return self.refusals.pop(0) if self.refusals else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        path = self._path()
        if path is None:
            return
        if path == "":
            status = {"error_code": "OK", "error_message": ""}
            one = {"version": str(VERSION), "state": "AVAILABLE", "status": status}
            self._say(200, {"model_version_status": [one]})
        elif path == "/metadata":
            described = {name: _described(*tensors) for name, tensors in SIGNATURES.items()}
            described["__saved_model_init_op"] = {"inputs": {}, "outputs": {}, "method_name": ""}
            inner = {"@type": "type.googleapis.com/...", "signature_def": described}
            spec = {"name": MODEL, "signature_name": "", "version": str(VERSION)}
            self._say(200, {"model_spec": spec, "metadata": {"signature_def": inner}})
        else:
            self._say(404, {"error": f"Malformed request: GET {self.path}"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self._path()
        if path is None:
            return
        refusal = self.model.refusal()
        if refusal is not None:
            self._say(refusal, {"error": "Batch scheduling queue is full"})
            return
        time.sleep(self.model.delay)
        request = json.loads(body)
        name = request.get("signature_name", "serving_default")
        if path != ":predict" or name not in SIGNATURES:
            self._say(400, {"error": f"Serving signature name: {name} not found"})
            return
        inputs = request["inputs"]
        texts = [_decoded(text) for text in (inputs["text"] if type(inputs) is dict else inputs)]
        self.model.rows.append(len(texts))
        outputs = {key: _listed(batch) for key, batch in answer(name, texts).items()}
        # Of a single output the name is left out.
        named = outputs if len(outputs) > 1 else next(iter(outputs.values()))
        self._say(200, {"outputs": named})

    def _path(self) -> str | None:
        for begin in (f"/v1/models/{MODEL}/versions/{VERSION}", f"/v1/models/{MODEL}"):
            end = self.path.removeprefix(begin)
            if end != self.path and not end.startswith("/versions/"):
                return end
        self._say(404, {"error": "Servable not found for request: Latest(...)"})
        return None

    def _say(self, status: int, value: Any) -> None:
        content = json.dumps(value, indent=4).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _described(inputs: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
    def described(name: str, dtype: str, rank: int) -> dict[str, Any]:
        dims = [{"size": "-1", "name": ""}] * rank
        shape = {"dim": dims, "unknown_rank": False}
        return {"dtype": dtype, "tensor_shape": shape, "name": f"{name}:0"}

    tensors = {"inputs": inputs, "outputs": outputs}
    listed = {k: {n: described(n, *t) for n, t in v.items()} for k, v in tensors.items()}
    return {**listed, "method_name": "tensorflow/serving/predict", "defaults": {}}


def _decoded(text: Any) -> bytes:
    import base64

    return base64.b64decode(text["b64"]) if isinstance(text, dict) else text.encode()


def _listed(batch: np.ndarray) -> Any:
    if batch.dtype != object:
        return batch.tolist()
    return [_listed(row) if isinstance(row, np.ndarray) else row.decode() for row in batch]


@contextmanager
def rest_server(model: Model) -> Iterator[str]:
    """A server on loopback while the block runs; its address."""
    handler = type("Handler", (_Handler,), {"model": model})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def grpc_server(model: Model) -> Iterator[str]:
    """The same over gRPC."""
    import grpc
    from tensorflow_serving.apis import (
        get_model_metadata_pb2,
        get_model_status_pb2,
        model_service_pb2_grpc,
        predict_pb2,
        prediction_service_pb2_grpc,
    )

    codes = {503: grpc.StatusCode.UNAVAILABLE, 500: grpc.StatusCode.INTERNAL}

    def check(request: Any, context: Any) -> None:
        spec = request.model_spec
        if spec.name != MODEL or spec.version.value not in (0, VERSION):
            context.abort(grpc.StatusCode.NOT_FOUND, f"Servable not found for {spec.name}")

    class Predictions(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request: Any, context: Any) -> Any:
            check(request, context)
            refusal = model.refusal()
            if refusal is not None:
                context.abort(codes[refusal], "Batch scheduling queue is full")
            time.sleep(model.delay)
            texts = tf.make_ndarray(request.inputs["text"]).tolist()
            model.rows.append(len(texts))
            response = predict_pb2.PredictResponse()
            for key, batch in answer(request.model_spec.signature_name, texts).items():
                response.outputs[key].CopyFrom(tf.make_tensor_proto(batch, shape=batch.shape))
            return response

        def GetModelMetadata(self, request: Any, context: Any) -> Any:
            check(request, context)
            listed = get_model_metadata_pb2.SignatureDefMap()
            for name, (inputs, outputs) in SIGNATURES.items():
                one = listed.signature_def[name]
                for tensors, infos in ((inputs, one.inputs), (outputs, one.outputs)):
                    for key, (dtype, rank) in tensors.items():
                        infos[key].name = f"{key}:0"
                        infos[key].dtype = tf.dtypes.as_dtype(dtype[3:].lower()).as_datatype_enum
                        for _ in range(rank):
                            infos[key].tensor_shape.dim.add(size=-1)
            response = get_model_metadata_pb2.GetModelMetadataResponse()
            response.metadata["signature_def"].Pack(listed)
            return response

    class Models(model_service_pb2_grpc.ModelServiceServicer):
        def GetModelStatus(self, request: Any, context: Any) -> Any:
            check(request, context)
            response = get_model_status_pb2.GetModelStatusResponse()
            response.model_version_status.add(version=VERSION, state=30)  # AVAILABLE
            return response

    server = grpc.server(futures.ThreadPoolExecutor(4))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Predictions(), server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(Models(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"grpc://127.0.0.1:{port}"
    finally:
        server.stop(None)
