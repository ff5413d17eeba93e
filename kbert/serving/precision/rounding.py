"""Roundings to integers of what layers multiply, and which layers these are.

Smoothing: what a LayerNorm returns is a hundred times as large in some columns as in others, and
the steps of a row suit the largest alone. So column j of x is divided, and row j of W multiplied,
by s_j = sqrt(max |x_j| / max |W_j|). Source: Xiao et al. 2022 (arXiv:2211.10438), equation 4.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from tensorflow.python.framework import kernels

from kbert.layers.embeddings import TokenEmbedding
from kbert.layers.linear import LOWEST, FeedForward, Linear
from kbert.models.encoder import Encoder
from kbert.models.weights import named_weights

# oneDNN's product in TensorFlow for x86, and so in TF Serving; not in `tf.raw_ops`.
INTEGER_OP = "_QuantizedMatMul"
# With fewer the quantization of the rows costs more than the product.
_LEAST_WIDTH = 64
# Rows and tokens of the random texts that show how large columns are. Real ones gave no better
# metrics, and would have to be of the model's language.
_TEXTS, _TOKENS = 8, 32
# Attributes of a layer: what is chosen, and the method that is watched.
_ROUNDING, _CALL = "rounding", Linear.call.__name__
# Attributes of a model that hold the network whose layers are rounded.
_NETWORKS = ("encoder", "transformer", "decoder")


@dataclass(frozen=True)
class Rounding:
    """The rounding of the rows x and of the weights W (in, out) of a product.

    Attributes:
        smoothing: (in, 1), what rows of W are multiplied by and columns of x divided; or None.
        lowest: what no x is below, as after GELU; None for x of both signs.
    """

    smoothing: np.ndarray | None = None
    lowest: float | None = None

    @property
    def most(self) -> int:
        """The largest code of a weight; see `kbert.serving.precision.integer_products`."""
        return 63 if self.lowest is None else 127


def has_integer_products() -> bool:
    """Returns whether the installed TensorFlow has the op: on x86 it does."""
    return bool(kernels.get_registered_kernels_for_op(INTEGER_OP).kernel)


def integer_layers(model: Any) -> list[Linear | TokenEmbedding]:
    """Returns the layers that multiply integers in an int8 export of a model.

    They are the dense layers of its encoder, encoder-decoder or decoder, and the embeddings by
    which a decoder makes its logits.
    """
    network = _network(model)
    if network is None or not has_integer_products():
        return []
    layers = [layer for layer in network._flatten_layers() if isinstance(layer, Linear)]
    if getattr(network, "tied", "none") != "none":
        layers.append(network.target_embedding)
    return [layer for layer in layers if min(product_matrix(layer).shape) >= _LEAST_WIDTH]


def product_matrix(layer: Linear | TokenEmbedding) -> Any:
    """Returns what a layer multiplies: its kernel (in, out), or its table (V, D)."""
    return layer.embeddings if isinstance(layer, TokenEmbedding) else layer.kernel


def integer_matrices(model: Any) -> dict[int, Rounding]:
    """Returns the rounding of the matrix of each of `integer_layers`, by the matrix's identity."""
    layers = integer_layers(model)
    return {id(product_matrix(one)): getattr(one, _ROUNDING, Rounding()) for one in layers}


def _network(model: Any) -> keras.Model | None:
    parts = (getattr(model, name, None) for name in _NETWORKS)
    return next((part for part in parts if isinstance(part, keras.Model)), None)


def choose_roundings(model: Any, like: Any = None) -> None:
    """Chooses how the `integer_layers` of a model are rounded.

    Smoothed are those from the encoder's width to a larger one: they read LayerNorms, and dividing
    their inputs costs little. The factors are powers of two, so that no float is rounded by them.

    Args:
        model: a model whose layers get the roundings; its weights stay as they are.
        like: a model that has them, with the same encoder, adapters and pooler excepted. Its
            smoothing is taken: weights that are shared must be rounded alike.
    """
    network = _network(model)
    layers = [layer for layer in integer_layers(model) if isinstance(layer, Linear)]
    if network is None or not layers:
        return
    blocks = [one for one in network._flatten_layers() if isinstance(one, FeedForward)]
    lowest = {id(b.output_linear): LOWEST.get(str(b.intermediate.activation)) for b in blocks}
    names = {id(kernel): name for name, kernel in named_weights(network).items()}
    found: dict[str, np.ndarray | None] = {}
    if like is None and isinstance(network, Encoder):
        wide = [one for one in layers if one.kernel.shape[0] == network.hidden_dim < one.units]
        factors = _smoothing(network, wide)
        found = {names[id(one.kernel)]: factors.get(id(one)) for one in wide}
    elif like is not None:
        known = integer_matrices(like)
        kernels = {n: one for n, one in named_weights(like.encoder).items() if id(one) in known}
        found = {name: known[id(one)].smoothing for name, one in kernels.items()}
    for layer in layers:
        smoothing = found.get(names[id(layer.kernel)])
        setattr(layer, _ROUNDING, Rounding(smoothing, lowest.get(id(layer))))


def _smoothing(encoder: Encoder, layers: list[Linear]) -> dict[int, np.ndarray]:
    """Returns the factors (in, 1) of the layers that are called, by the layers' identities."""
    largest: dict[int, np.ndarray] = {}

    def watched(layer: Linear) -> Callable[..., Any]:
        computed = layer.call

        def call(inputs: Any, *args: Any, **kwargs: Any) -> Any:
            columns = np.abs(np.asarray(inputs)).reshape(-1, inputs.shape[-1]).max(axis=0)
            largest[id(layer)] = np.maximum(largest.get(id(layer), columns), columns)
            return computed(inputs, *args, **kwargs)

        return call

    length = min(_TOKENS, encoder.max_sequence_length)
    ids = np.random.default_rng(1).integers(encoder.vocabulary_size, size=(_TEXTS, length))
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids >= 0}
    with ExitStack() as stack:
        for layer in layers:
            setattr(layer, _CALL, watched(layer))
            stack.callback(delattr, layer, _CALL)
        encoder({k: keras.ops.convert_to_tensor(v) for k, v in inputs.items()}, training=False)
    called = [layer for layer in layers if id(layer) in largest]
    return {id(layer): _powers(largest[id(layer)], layer.kernel) for layer in called}


def _powers(largest: np.ndarray, kernel: Any) -> np.ndarray:
    """Returns the powers of two (in, 1) next to sqrt(largest / the largest of a kernel's rows)."""
    of_weights = np.abs(np.asarray(kernel)).max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.rint(np.log2(largest / of_weights) / 2)
    # A column or a row of zeros stays as it is.
    return np.exp2(np.where(np.isfinite(exponents), exponents, 0)).astype("float32")[:, None]
