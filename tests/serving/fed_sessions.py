"""The C++ session that TF Serving runs, in this process, without checks of what it is fed."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the ops that the graphs use)
from tensorflow.core.protobuf import config_pb2

from kbert.serving.format.signatures import read_meta_graph, signatures_of

Ask = Callable[..., dict[str, np.ndarray]]


def fed_session(path: Path) -> Callable[[str], Ask]:
    """Loads an export; name of a signature -> its function from inputs to outputs by name."""
    graph = tf.Graph()
    session = tf.compat.v1.Session(graph=graph)
    with graph.as_default():
        tf.compat.v1.saved_model.load(session, ["serve"], str(path))
    signatures = signatures_of(read_meta_graph(path))

    def signature(name: str) -> Ask:
        one = signatures[name]
        options = config_pb2.CallableOptions(
            feed=[tensor.tensor for tensor in one.inputs.values()],
            fetch=[tensor.tensor for tensor in one.outputs.values()],
        )
        call = session._make_callable_from_options(options)
        return lambda **inputs: dict(zip(one.outputs, call(*(inputs[name] for name in one.inputs))))

    return signature
