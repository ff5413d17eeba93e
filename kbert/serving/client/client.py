"""Client of a model in TF Serving, over REST or gRPC."""

import functools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np

from kbert.pipelines.text_inputs import checked_texts, read_columns
from kbert.serving.client.grpc_transport import GrpcTransport
from kbert.serving.client.rest_transport import RestTransport
from kbert.serving.client.server_errors import DeadlineExceeded, Retries, ServerError
from kbert.serving.client.typed_answers import AnyAnswer
from kbert.serving.format.batching_file import MAX_BATCH_SIZE
from kbert.serving.format.signatures import SERVING_DEFAULT, Signature, checked_call
from kbert.serving.loading.row_batches import in_batches
from kbert.tasks.registry import typed_answer

Result = TypeVar("Result")
# The order of the inputs of kbert's models.
_ORDER = {"text": 0, "text_a": 1, "text_b": 2, "question": 3, "context": 4, "choices": 5}


class Client(AbstractContextManager["Client"]):
    """One model of a server. A context manager; thread-safe.

    `url` is "http://host:8501" or "https://..." for REST, "grpc://host:8500" or "grpcs://..." (TLS)
    for gRPC, which needs the extra "serving". Without a version the server chooses. `timeout` are
    the seconds for one call of a method, pauses and all its requests included. A request has at
    most `max_batch_size` rows; a server with batching refuses more than its own, and `kbert serve`
    more than 1,024. ValueError is raised for an argument of no use. All methods but
    `is_ready` and `close` raise ServerError where there is no answer in the end.
    """

    def __init__(
        self,
        url: str,
        model: str,
        version: int | None = None,
        timeout: float = 30.0,
        max_batch_size: int = MAX_BATCH_SIZE,
        retries: Retries = Retries(),
    ) -> None:
        for name, value in (("timeout", timeout), ("max_batch_size", max_batch_size)):
            if not 0 < value < math.inf:
                raise ValueError(f"`{name}` must be positive and finite. Received: {name}={value}")
        if not isinstance(model, str) or not model:
            raise ValueError(f"`model` must be a name on the server. Received: model={model!r}")
        if version is not None and not isinstance(version, int):
            raise ValueError(f"`version` must be an integer. Received: version={version!r}")
        self.timeout = timeout
        self.max_batch_size = max_batch_size
        self.retries = retries
        self._transport = _transport(url, model, version)
        self._signatures: dict[str, Signature] | None = None

    def signatures(self) -> dict[str, Signature]:
        """Returns the model's signatures; requested once, and again if a call did not fit them."""
        return self._known_signatures(time.monotonic() + self.timeout)

    def status(self) -> dict[int, str]:
        """Returns version -> state, such as "AVAILABLE" or "LOADING"."""
        return self._ask(self._transport.status, time.monotonic() + self.timeout)

    def is_ready(self) -> bool:
        """Returns whether a version is available; False too if the server does not answer."""
        try:
            return "AVAILABLE" in self.status().values()
        except RuntimeError:
            return False

    def predict(
        self, inputs: Mapping[str, Sequence[Any]], signature: str = SERVING_DEFAULT
    ) -> dict[str, np.ndarray]:
        """Calls a signature on n rows, a request per batch; batches are length-bucketed.

        `inputs` are name of each input -> n values, str or bytes for texts; the result is name of
        each output -> n answers, (n, ...), in the order of the rows, with strings as bytes. Raises
        ValueError for another signature, other inputs, or inputs that differ in length, and
        TypeError for an entry that is no text.
        """
        deadline = time.monotonic() + self.timeout
        call = functools.partial(self._predict, inputs, signature, deadline)
        return self._with_signatures(call, deadline)

    def answers(self, *texts: Sequence[Any]) -> list[AnyAnswer]:
        """Answers raw texts through "serving_default", with one object of the task for each row.

        `texts` are n str or bytes for each input, in the order of kbert's models: text; text_a,
        text_b; question, context; context, choices; or one dict or table with columns of these
        names. Raises ValueError for another number of inputs, or ones that differ in length.
        """
        deadline = time.monotonic() + self.timeout
        call = functools.partial(self._answers, texts, deadline)
        return self._with_signatures(call, deadline)

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _answers(
        self, texts: Sequence[Any], deadline: float, signatures: dict[str, Signature]
    ) -> list[AnyAnswer]:
        known = signatures.get(SERVING_DEFAULT)
        names = sorted(known.inputs, key=lambda k: (_ORDER.get(k, len(_ORDER)), k)) if known else []
        if len(texts) == 1 and isinstance(table := read_columns(texts[0], tuple(names)), dict):
            return self._typed(table, deadline, signatures)
        columns: list[Any] = [
            column
            for column in texts
            if isinstance(column, Iterable) and not isinstance(column, str | bytes)
        ]
        if len(columns) != len(names) or len(columns) != len(texts):
            raise ValueError(
                f"`texts` must be {len(names)} list(s), for {names}. Received: "
                f"{[type(column).__name__ for column in texts]}"
            )
        return self._typed(dict(zip(names, columns)), deadline, signatures)

    def _typed(
        self,
        inputs: Mapping[str, Sequence[Any]],
        deadline: float,
        signatures: dict[str, Signature],
    ) -> list[AnyAnswer]:
        found = self._predict(inputs, SERVING_DEFAULT, deadline, signatures)
        rows = len(next(iter(found.values())))
        return [typed_answer({key: found[key][i] for key in sorted(found)}) for i in range(rows)]

    def _predict(
        self,
        inputs: Mapping[str, Sequence[Any]],
        signature: str,
        deadline: float,
        signatures: dict[str, Signature],
    ) -> dict[str, np.ndarray]:
        called = checked_call(signatures, signature, inputs)
        inputs = {
            name: checked_texts(name, column) if called.inputs[name].holds_texts else column
            for name, column in inputs.items()
        }
        lengths = {key: len(column) for key, column in inputs.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"`inputs` must have one value a row each. Received: {lengths}")

        def run(columns: dict[str, list[Any]]) -> dict[str, np.ndarray]:
            batch = {name: called.inputs[name].batch(name, columns[name]) for name in columns}
            send = self._transport.predict
            return self._ask(lambda left: send(signature, called, batch, left), deadline)

        return in_batches(run, inputs, self.max_batch_size)

    def _ask(self, ask: Callable[[float], Result], deadline: float) -> Result:
        return self.retries.run(ask, deadline, self._transport.target)

    def _with_signatures(
        self, call: Callable[[dict[str, Signature]], Result], deadline: float
    ) -> Result:
        """Calls with the signatures that are known, and once more if the server has others now."""
        known = self._signatures
        try:
            return call(self._known_signatures(deadline))
        except (ServerError, ValueError) as error:
            is_late = isinstance(error, DeadlineExceeded)
            if known is None or is_late or isinstance(error, ServerError) and error.may_pass:
                raise
            try:
                ask = self._transport.signatures
                found = Retries(most=0).run(ask, deadline, self._transport.target)
            except ServerError:
                raise error from None
            if found == known:
                raise
        self._signatures = found
        return call(found)

    def _known_signatures(self, deadline: float) -> dict[str, Signature]:
        if self._signatures is None:
            self._signatures = self._ask(self._transport.signatures, deadline)
        return self._signatures


def _transport(url: str, model: str, version: int | None) -> RestTransport | GrpcTransport:
    kind, _, address = url.partition("://")
    if kind in ("http", "https") and address:
        return RestTransport(url, model, version)
    if kind in ("grpc", "grpcs") and address:
        return GrpcTransport(address.rstrip("/"), model, version, secure=kind == "grpcs")
    raise ValueError(
        "`url` must begin with http://, https://, grpc:// or grpcs:// and name a host. "
        f"Received: url={url!r}"
    )
