"""Requests to TF Serving over REST. Source: tensorflow/serving, `g3doc/api_rest.md`."""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import numpy as np
import requests
from google.protobuf import json_format
from tensorflow.core.protobuf import meta_graph_pb2
from urllib3 import Timeout

from kbert.serving.client.deadline_adapter import DeadlineAdapter
from kbert.serving.client.server_errors import ServerError, server_error
from kbert.serving.format.json_tensors import from_json, to_json
from kbert.serving.format.signatures import Signature, signatures_of

_SHOWN = 500
_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)
# Pooled connections: as many threads may send requests at a time without opening new ones.
_THREADS = 64


class RestTransport:
    """One model of a server, over HTTP; connections are kept alive.

    Args:
        url: Base URL, such as "http://localhost:8501".
        model: The model's name.
        version: Its version, or None for the server's choice.
    """

    def __init__(self, url: str, model: str, version: int | None = None) -> None:
        number = "" if version is None else f"/versions/{version}"
        self.target = f"{url.rstrip('/')}/v1/models/{quote(model, safe='')}{number}"
        self._session = requests.Session()
        adapter = DeadlineAdapter(pool_maxsize=_THREADS)
        for kind in ("http://", "https://"):
            self._session.mount(kind, adapter)

    def predict(
        self, name: str, signature: Signature, inputs: Mapping[str, np.ndarray], seconds: float
    ) -> dict[str, np.ndarray]:
        """Calls a signature by its name, for at most so many seconds.

        Raises:
            ServerError: There was no answer, or one that cannot be parsed.
        """
        columns = {key: to_json(batch) for key, batch in inputs.items()}
        body = {"signature_name": name, "inputs": columns}
        found = self._ask("POST", ":predict", seconds, body)
        with self._reading("an answer without its outputs"):
            outputs = found["outputs"]
            # TF Serving omits the name of a single output.
            named = isinstance(outputs, dict) and set(outputs) == set(signature.outputs)
            if len(signature.outputs) == 1 and not named:
                outputs = {next(iter(signature.outputs)): outputs}
            return {
                key: _of_rank(from_json(outputs[key], tensor.dtype), tensor.shape)
                for key, tensor in signature.outputs.items()
            }

    def signatures(self, seconds: float) -> dict[str, Signature]:
        """Requests the signatures of the model; raises as `predict`."""
        found = self._ask("GET", "/metadata", seconds)
        with self._reading("metadata that cannot be read"):
            listed = {"signature_def": found["metadata"]["signature_def"]["signature_def"]}
            meta_graph = meta_graph_pb2.MetaGraphDef()
            json_format.ParseDict(listed, meta_graph, ignore_unknown_fields=True)
            return signatures_of(meta_graph)

    def status(self, seconds: float) -> dict[int, str]:
        """Requests version -> state, such as "AVAILABLE"; raises as `predict`."""
        found = self._ask("GET", "", seconds)
        with self._reading("a status that cannot be read"):
            return {int(one["version"]): one["state"] for one in found["model_version_status"]}

    def close(self) -> None:
        """Closes the connections."""
        self._session.close()

    @contextlib.contextmanager
    def _reading(self, otherwise: str) -> Iterator[None]:
        """Raises a ServerError that describes a reply of another form."""
        try:
            yield
        except (*_UNREADABLE, json_format.ParseError) as error:
            raise server_error("INTERNAL", f"{otherwise}: {error!r}", self.target) from error

    def _ask(self, method: str, end: str, seconds: float, body: Any = None) -> Any:
        url = self.target + end
        data = None if body is None else json.dumps(body).encode("utf-8")
        headers = {"Content-Type": "application/json"}
        deadline = time.monotonic() + seconds
        left: Any = Timeout(total=seconds)
        try:
            answer = self._session.request(
                method, url, data=data, headers=headers, timeout=left, allow_redirects=False
            )
            content = answer.content
        except requests.RequestException as error:
            # A stalled body does not raise `requests.Timeout`.
            if isinstance(error, requests.Timeout) or time.monotonic() >= deadline:
                words = f"no answer within {seconds:.3g} s"
                raise server_error("DEADLINE_EXCEEDED", words, url) from error
            raise server_error("UNAVAILABLE", str(error), url) from error
        if answer.status_code != 200:
            raise self._refusal(answer.status_code, content, url)
        try:
            return json.loads(content)
        except ValueError as error:
            words = f"{content[:_SHOWN]!r}, which is no JSON"
            raise server_error("INTERNAL", words, url) from error

    def _refusal(self, code: int, content: bytes, url: str) -> ServerError:
        words = content.decode("utf-8", "replace").strip()
        try:
            words = str(json.loads(words)["error"])
        except (ValueError, KeyError, TypeError):
            words = words or f"HTTP {code}"
        return server_error(code, words[:_SHOWN], url)


def _of_rank(batch: np.ndarray, shape: tuple[int | None, ...] | None) -> np.ndarray:
    """Restores all dimensions of an empty batch: JSON has none inside an empty list."""
    if batch.size or shape is None or batch.ndim >= len(shape):
        return batch
    return batch.reshape(*batch.shape, *(size or 0 for size in shape[batch.ndim :]))
