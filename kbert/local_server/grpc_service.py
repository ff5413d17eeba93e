"""TF Serving's PredictionService and ModelService over gRPC, and gRPC's health service.

Sources: tensorflow/serving, `prediction_service.proto`, `model_service.proto`; gRPC Health
Checking Protocol (grpc/doc/health-checking.md).
"""

import asyncio
import functools
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf
from google.protobuf import json_format

from kbert.extras import install_extra
from kbert.local_server.limits import LARGE_BYTES, Gate, Refusal, in_thread, invalid
from kbert.local_server.model_store import ModelStore, check_inputs, signature_of
from kbert.local_server.served_model import ServedModel, status_of
from kbert.serving.format.signatures import SERVING_DEFAULT, Signature

logger = logging.getLogger(__name__)
# TensorFlow may send one value for many equal ones: it is expanded to at most this many elements.
_MOST_REPEATED = 64 * 2**10
# NumPy's arrays have no more. The product of the sizes of a longer shape could take minutes.
_MOST_DIMENSIONS = 64
# Seconds that a client's clock may be ahead.
_EARLY = 0.05
_Method = Callable[[Any, Any, Any], Any]


def _refusing(method: _Method) -> _Method:
    """Makes refusals of a service's method, and its other errors, statuses of gRPC."""

    @functools.wraps(method)
    async def guarded(service: Any, request: Any, context: Any) -> Any:
        try:
            return await method(service, request, context)
        except Refusal as refusal:
            await _abort(context, refusal)
        except Exception:
            logger.exception("A request failed.")
            await _abort(context, Refusal("INTERNAL", "The server failed; its log tells why"))

    return guarded


class PredictionService:
    """Predict and GetModelMetadata."""

    def __init__(self, store: ModelStore, gate: Gate) -> None:
        self._store = store
        self._gate = gate

    @_refusing
    async def Predict(self, request: Any, context: Any) -> Any:
        """Answers a PredictRequest."""
        whole = context.time_remaining()
        with self._store.metrics.request("GRPC") as counted:
            try:
                with self._gate.admitted() as deadline:
                    return await self._predict(request, context, deadline, counted)
            except asyncio.CancelledError:
                counted.status = _why_cancelled(context, whole)
                raise

    async def _predict(self, request: Any, context: Any, deadline: float, counted: Any) -> Any:
        from tensorflow_serving.apis import predict_pb2

        left = context.time_remaining()
        if left is not None:
            deadline = min(deadline, time.monotonic() + left)
        model = _model(self._store, request)
        counted.model = request.model_spec.name
        version = model.pick(*_wanted(request))
        name = request.model_spec.signature_name or SERVING_DEFAULT
        signature = signature_of(version, name)
        chosen = sorted(set(request.output_filter) or signature.outputs)
        if wrong := set(chosen) - set(signature.outputs):
            words = f"output_filter must name outputs of {sorted(signature.outputs)}, and has"
            raise invalid(f"{words} {min(wrong)[:100]!r}")
        most = self._gate.limits.max_request_bytes
        large = request.ByteSize() > LARGE_BYTES
        inputs = await in_thread(large, _arrays, request.inputs, signature, most)
        check_inputs(signature, inputs)
        answer = await self._store.answer(version, name, inputs, deadline)
        response = predict_pb2.PredictResponse()
        spec = response.model_spec
        spec.name, spec.version.value = request.model_spec.name, version.number
        spec.signature_name = name
        for key in chosen:
            tensor = tf.make_tensor_proto(answer[key], shape=answer[key].shape)
            response.outputs[key].CopyFrom(tensor)
        return response

    @_refusing
    async def GetModelMetadata(self, request: Any, context: Any) -> Any:
        """Answers a GetModelMetadataRequest: signatures."""
        from tensorflow_serving.apis import get_model_metadata_pb2

        version = _model(self._store, request).pick(*_wanted(request))
        if list(request.metadata_field) != ["signature_def"]:
            raise invalid("metadata_field must be 'signature_def' alone")
        listed = get_model_metadata_pb2.SignatureDefMap()
        for name, one in version.model.meta_graph.signature_def.items():
            listed.signature_def[name].CopyFrom(one)
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        spec = response.model_spec
        spec.name, spec.version.value = request.model_spec.name, version.number
        response.metadata["signature_def"].Pack(listed)
        return response

    @_refusing
    async def Classify(self, request: Any, context: Any) -> Any:
        """Refuses the request: not implemented."""
        raise Refusal("UNIMPLEMENTED", "This server leaves it out: ask with Predict")

    Regress = MultiInference = Classify


class ModelService:
    """GetModelStatus."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store

    @_refusing
    async def GetModelStatus(self, request: Any, context: Any) -> Any:
        """Answers a GetModelStatusRequest."""
        from tensorflow_serving.apis import get_model_status_pb2

        found = status_of(_model(self._store, request), *_wanted(request))
        response = get_model_status_pb2.GetModelStatusResponse()
        return json_format.ParseDict({"model_version_status": found}, response)

    HandleReloadConfigRequest = PredictionService.Classify


class Health:
    """Check, List and Watch of the whole server, which is SERVING from its start to its end.

    The Watch of grpcio-health-checking never returns, and a server that ends would wait for it.
    """

    def __init__(self) -> None:
        self._over = asyncio.Event()

    async def Check(self, request: Any, context: Any) -> Any:
        """Answers a HealthCheckRequest."""
        import grpc

        if request.service:  # only the whole server, which has no name, is known
            await context.abort(grpc.StatusCode.NOT_FOUND, "There is no such service")
        return self._state()

    async def List(self, request: Any, context: Any) -> Any:
        """Answers a HealthListRequest."""
        from grpc_health.v1 import health_pb2

        return health_pb2.HealthListResponse(statuses={"": self._state()})

    async def Watch(self, request: Any, context: Any) -> None:
        """Streams the state, and the end."""
        from grpc_health.v1 import health_pb2

        if request.service:
            unknown = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
            await context.write(health_pb2.HealthCheckResponse(status=unknown))
            await self._over.wait()
            return
        if not self._over.is_set():
            await context.write(self._state())
            await self._over.wait()
        await context.write(self._state())

    def end(self) -> None:
        """Notifies all watchers that the server ends."""
        self._over.set()

    def _state(self) -> Any:
        from grpc_health.v1 import health_pb2

        states = health_pb2.HealthCheckResponse
        return states(status=states.NOT_SERVING if self._over.is_set() else states.SERVING)


@dataclass(frozen=True)
class GrpcServer:
    """A listening `grpc.aio.Server`, its health service and its port."""

    server: Any
    healthy: Health
    port: int

    async def stop(self, seconds: float) -> None:
        """Accepts no more requests, and waits so long at most for those in progress."""
        self.healthy.end()
        await self.server.stop(seconds)


async def start_grpc(store: ModelStore, gate: Gate, host: str, port: int) -> GrpcServer:
    """Starts to listen, on the running event loop; with port 0 at a free one, OSError if taken."""
    try:
        import grpc
        from grpc_health.v1 import health_pb2_grpc
        from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc
    except ImportError as error:
        raise ImportError(
            "gRPC needs grpcio, grpcio-health-checking and tensorflow-serving-api: "
            f"{install_extra('serving')}. A `grpc_port` of -1 does without"
        ) from error
    options = (
        ("grpc.max_receive_message_length", gate.limits.max_request_bytes),
        ("grpc.max_send_message_length", -1),
        # Otherwise two servers would share a port without an error.
        ("grpc.so_reuseport", 0),
    )
    most = 8 * gate.limits.max_concurrency + 64  # the gate refuses well before
    server = grpc.aio.server(options=options, maximum_concurrent_rpcs=most)
    predictions, models = PredictionService(store, gate), ModelService(store)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(predictions, server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(models, server)
    healthy = Health()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    address = f"[{host}]" if ":" in host else host
    try:
        bound = server.add_insecure_port(f"{address}:{port}")
    except RuntimeError as error:
        raise OSError(
            f"The gRPC port {port} of {host} cannot be used: {error}. Choose another `grpc_port` "
            "(--grpc-port); 0 picks a free one, -1 does without"
        ) from error
    await server.start()
    return GrpcServer(server, healthy, bound)


def _model(store: ModelStore, request: Any) -> ServedModel:
    if not request.HasField("model_spec") or not request.model_spec.name:
        raise invalid("Missing ModelSpec")
    return store.model(request.model_spec.name)


def _wanted(request: Any) -> tuple[int | None, str | None]:
    spec = request.model_spec
    chosen = spec.WhichOneof("version_choice")
    version = spec.version.value if chosen == "version" else None
    return version, spec.version_label if chosen == "version_label" else None


def _arrays(inputs: Mapping[str, Any], signature: Signature, most: int) -> dict[str, np.ndarray]:
    """Returns the tensors of a request; no memory is allocated for a shape beyond its data."""
    found = {}
    for name, proto in inputs.items():
        tensor = signature.inputs.get(name)
        # Without rows there are no elements; but a graph may allocate by the other dimensions.
        sizes = [dim.size for dim in proto.tensor_shape.dim[: _MOST_DIMENSIONS + 1]]
        cells = math.prod(max(1, size) for size in sizes)
        if tensor is None or proto.dtype != tensor.dtype.as_datatype_enum:
            dtype = "no such input" if tensor is None else f"not {tensor.dtype.name}"
            raise invalid(f"input {name[:100]!r}: {dtype}")
        values = [name for name in proto.DESCRIPTOR.fields_by_name if name.endswith("_val")]
        sent = max(len(proto.tensor_content), *(len(getattr(proto, name)) for name in values))
        promised = min(most, max(_MOST_REPEATED, sent))
        texts = proto.string_val
        repeated = (cells - len(texts)) * len(texts[-1]) if texts else 0
        if (
            proto.tensor_shape.unknown_rank
            or len(sizes) > _MOST_DIMENSIONS
            or min(sizes, default=0) < 0
            or cells > promised
            or repeated > most
        ):
            raise invalid(f"input {name!r}: not such a shape")
        try:
            found[name] = np.asarray(tf.make_ndarray(proto))
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            raise invalid(f"input {name!r}: {str(error)[:300]}") from error
    return found


def _why_cancelled(context: Any, whole: float | None) -> str:
    """Returns the status of a call that gRPC cancels: by the client, or after its deadline.

    After a deadline the client's message may arrive a little before the time, `whole` at the start,
    is over here: gRPC rounds up the timeout of a call for the server, by at most a hundredth.
    """
    if whole is None or context.time_remaining() > _EARLY + 0.01 * whole:
        return "CANCELLED"
    return "DEADLINE_EXCEEDED"


async def _abort(context: Any, refusal: Refusal) -> NoReturn:
    import grpc

    await context.abort(grpc.StatusCode[refusal.code], refusal.message)
    raise refusal  # never reached: `abort` raises
