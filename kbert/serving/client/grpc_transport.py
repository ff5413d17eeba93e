"""Requests to TF Serving over gRPC, with its official messages (extra "serving")."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from kbert.extras import install_extra
from kbert.serving.client.server_errors import server_error
from kbert.serving.format.signatures import Signature, signatures_of

# No limit here: the server has one.
_TOO_LARGE = "larger than max"  # of gRPC's own words
_OPTIONS = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))


class GrpcTransport:
    """One model at "localhost:8500", say; TLS with this machine's certificates if `secure`."""

    def __init__(
        self, address: str, model: str, version: int | None = None, secure: bool = False
    ) -> None:
        try:
            import grpc
            from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc
        except ImportError as error:
            raise ImportError(
                "gRPC needs the packages grpcio and tensorflow-serving-api: "
                f"{install_extra('serving')}. "
                "REST needs neither: begin `url` with http://"
            ) from error
        number = "" if version is None else f", version {version}"
        self.target = f"{address}, model {model}{number}"
        self._model, self._version = model, version
        if secure:
            credentials = grpc.ssl_channel_credentials()
            self._channel = grpc.secure_channel(address, credentials, options=_OPTIONS)
        else:
            self._channel = grpc.insecure_channel(address, options=_OPTIONS)
        self._predictions = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(self._channel)

    def predict(
        self, name: str, signature: Signature, inputs: Mapping[str, np.ndarray], seconds: float
    ) -> dict[str, np.ndarray]:
        """Calls a signature; see `RestTransport.predict`."""
        from tensorflow_serving.apis import predict_pb2

        request = self._spec(predict_pb2.PredictRequest())
        request.model_spec.signature_name = name
        for key, batch in inputs.items():
            tensor = tf.make_tensor_proto(batch, signature.inputs[key].dtype, batch.shape)
            request.inputs[key].CopyFrom(tensor)
        answer = self._ask(self._predictions.Predict, request, seconds)
        try:
            outputs = answer.outputs
            return {key: tf.make_ndarray(outputs[key]) for key in sorted(outputs)}
        except (TypeError, ValueError) as error:
            words = f"an answer that cannot be read: {error!r}"
            raise server_error("INTERNAL", words, self.target) from error

    def signatures(self, seconds: float) -> dict[str, Signature]:
        """Requests the model's signatures."""
        from tensorflow_serving.apis import get_model_metadata_pb2

        request = self._spec(get_model_metadata_pb2.GetModelMetadataRequest())
        request.metadata_field.append("signature_def")
        answer = self._ask(self._predictions.GetModelMetadata, request, seconds)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        if not answer.metadata["signature_def"].Unpack(signatures):
            raise server_error("INTERNAL", "metadata without signatures", self.target)
        meta_graph = meta_graph_pb2.MetaGraphDef()
        for name, one in signatures.signature_def.items():
            meta_graph.signature_def[name].CopyFrom(one)
        return signatures_of(meta_graph)

    def status(self, seconds: float) -> dict[int, str]:
        """Requests version -> state."""
        from tensorflow_serving.apis import get_model_status_pb2

        request = self._spec(get_model_status_pb2.GetModelStatusRequest())
        answer = self._ask(self._models.GetModelStatus, request, seconds)
        states = get_model_status_pb2.ModelVersionStatus.State
        return {one.version: states.Name(one.state) for one in answer.model_version_status}

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()

    def _spec(self, request: Any) -> Any:
        request.model_spec.name = self._model
        if self._version is not None:
            request.model_spec.version.value = self._version
        return request

    def _ask(self, method: Any, request: Any, seconds: float) -> Any:
        import grpc

        try:
            return method(request, timeout=seconds)
        except grpc.RpcError as error:
            code, words = error.code().name, str(error.details())
            if code == "RESOURCE_EXHAUSTED" and _TOO_LARGE in words:
                code = "INVALID_ARGUMENT"  # it would never pass; over REST it is status 413
            raise server_error(code, words, self.target) from error
