"""A SavedModel of any origin, loaded into Python: its signatures, and calls of them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the ops that the graphs use)

from kbert.serving.format.signatures import read_meta_graph, signatures_of


class LoadedModel:
    """The graph and the weights of a version folder; thread-safe.

    Raises:
        FileNotFoundError: There is no saved_model.pb.
        ValueError: It is not a SavedModel for serving.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.meta_graph = read_meta_graph(path)
        # Clients only see the signatures; the nodes would stay in memory for nothing.
        self.meta_graph.ClearField("graph_def")
        self.signatures = signatures_of(self.meta_graph)
        # The object keeps the weights alive; the signatures alone do not.
        self._loaded: Any = tf.saved_model.load(str(path))

    def run(self, signature: str, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Calls a signature once; inputs and outputs are batches (B, ...), strings are bytes.

        Raises:
            KeyError: There is no such signature, or an input is missing.
            ValueError: An input has another rank.
        """
        tensors = {
            name: tf.constant(tensor.batch(name, inputs[name]), tensor.dtype)
            for name, tensor in self.signatures[signature].inputs.items()
        }
        answers = self._loaded.signatures[signature](**tensors)
        return {name: answer.numpy() for name, answer in answers.items()}
