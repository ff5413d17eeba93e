"""The dtypes in which an export stores its weights and computes, and what it stores only once.

Int8: weight = scale * code, code in [-127, 127], scale = the largest magnitude / 127; both are 63
where `integer_products` multiplies. A matrix (in, out) has a scale for each column, the outputs; a
table of embeddings one for each row, so that a row can be looked up before it is dequantized.
Source: Jacob et al. 2018 (arXiv:1712.05877), section 2.1, with zero point 0; per channel as
Krishnamoorthi 2018 (arXiv:1806.08342), section 3.1.

Half: adapters and heads of half-precision files are float32 once they are loaded. Where float16
holds a weight exactly, an export stores that, and computes with the same numbers.
"""

import functools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import chain
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.layers.embeddings import TokenEmbedding
from kbert.layers.linear import Linear
from kbert.models.weights import named_weights
from kbert.pipelines.inference import CapturedWeights
from kbert.serving.export.frozen import FrozenEncoders
from kbert.serving.export.integer_products import (
    MOST_OF_WEIGHTS,
    has_integer_products,
    integer_kernels,
    integer_layers,
    integer_products,
)
from kbert.serving.export.processor import computes_bfloat16, packs_integers
from kbert.serving.format.version_folders import PRECISIONS

logger = logging.getLogger(__name__)
_MOST = 127
# For smaller ones the scales, or the graph's nodes, cost about as much as is saved.
_LEAST_NUMBERS = 2048
_TABLE = "embeddings"
# The method of a table that is replaced while a graph is traced.
_LOOK_UP = TokenEmbedding.look_up.__name__


def in_precision(model: Any, precision: str | None) -> Any:
    """Converts a model to the precision of an export: itself if nothing changes, else a copy.

    "bfloat16" is for storage and computation: softmax, LayerNorm and logits as the layers compute
    them under that policy. "int8" quantizes the large weights; for those of encoders see
    `integer_products`. None leaves the model as it is. Raises ValueError for another precision, and
    for a model that Keras cannot make from its configuration.
    """
    if precision is None:
        return model
    if precision not in PRECISIONS:
        raise ValueError(
            f"`precision` must be one of {list(PRECISIONS)}. Received: precision={precision!r}"
        )
    if precision == "bfloat16" and not computes_bfloat16():
        logger.warning(
            "This processor has no instructions for bfloat16 (AVX512_BF16, AMX): the export is "
            "half as large, but slower here than one in float32."
        )
    if precision == "int8" and not has_integer_products():
        logger.warning(
            "This TensorFlow cannot multiply integers, as on x86: the export is a quarter as "
            "large, but slower than one in float32."
        )
    elif precision == "int8" and not packs_integers():
        logger.warning(
            "This processor has no instructions for which oneDNN packs integers (AVX512): here "
            "single short texts take longer than in float32, and only batches less."
        )
    dtype = "bfloat16" if precision == "bfloat16" else "float32"
    if precision != "int8" and _is_all_in(model, dtype):
        return model
    copy = _copied(model, dtype)
    if precision == "int8":
        multiplied = integer_kernels(copy)
        for variable in named_weights(copy).values():
            if is_stored_as_int8(variable):
                most = MOST_OF_WEIGHTS if id(variable) in multiplied else _MOST
                variable.assign(rounded_to_int8(np.asarray(variable), variable.name, most))
    return copy


def _is_all_in(model: Any, dtype: str) -> bool:
    if not isinstance(model, keras.Model):
        return dtype == "float32"
    floats = {v.dtype for v in model.weights if "seed_generator" not in v.path}
    return model.compute_dtype == dtype and floats <= {dtype}


def _copied(model: Any, dtype: str) -> Any:
    if not isinstance(model, keras.Model):
        raise ValueError(
            "`model` must be a Keras model to be exported in another precision. "
            f"Received: {type(model).__name__}"
        )
    try:
        config = keras.saving.serialize_keras_object(model)
        copy = keras.saving.deserialize_keras_object(_with_policy(config, dtype))
    except (TypeError, NotImplementedError) as error:
        raise ValueError(
            "`model` must be one that Keras can make from its configuration, to be exported in "
            f"another precision. Received: {type(model).__name__} ({error})"
        ) from error
    weights = named_weights(model)
    for name, variable in named_weights(copy).items():
        variable.assign(keras.ops.cast(weights[name], variable.dtype))
    return copy


def _with_policy(config: Any, dtype: str) -> Any:
    if isinstance(config, Mapping):
        if config.get("class_name") == "DTypePolicy":
            return {**config, "config": {**config["config"], "name": dtype}}
        return {key: _with_policy(value, dtype) for key, value in config.items()}
    if isinstance(config, list | tuple):
        return type(config)(_with_policy(value, dtype) for value in config)
    return config


def _is_large_matrix(variable: Any) -> bool:
    return len(variable.shape) == 2 and int(np.prod(variable.shape)) >= _LEAST_NUMBERS


def is_stored_as_int8(variable: Any) -> bool:
    """Returns whether a Keras variable is a float matrix of at least 2,048 numbers."""
    return _is_large_matrix(variable) and "float" in variable.dtype


def is_stored_as_half(variable: Any) -> bool:
    """Returns whether a Keras variable is a float32 matrix, as large, that float16 has exactly."""
    if not _is_large_matrix(variable) or variable.dtype != "float32":
        return False
    numbers = np.asarray(variable)
    with np.errstate(over="ignore"):  # overflow becomes infinite, and so is not equal
        return bool(np.array_equal(numbers.astype("float16").astype("float32"), numbers))


def int8_codes(matrix: np.ndarray, name: str, most: int = _MOST) -> tuple[np.ndarray, np.ndarray]:
    """Quantizes a matrix (in, out), or a table (V, D), whose `name` is "embeddings".

    Returns int8 of the same shape, in [-most, most], and float32 scales (1, out) or (V, 1).
    """
    wide = np.asarray(matrix, "float32")
    axis = 1 if name == _TABLE else 0
    scales = np.abs(wide).max(axis=axis, keepdims=True) / np.float32(most)
    scales = np.where(scales > 0, scales, np.float32(1)).astype("float32")
    return np.clip(np.rint(wide / scales), -most, most).astype("int8"), scales


def rounded_to_int8(matrix: np.ndarray, name: str, most: int = _MOST) -> np.ndarray:
    """Quantizes and dequantizes a matrix, to float32; see `int8_codes`."""
    codes, scales = int8_codes(matrix, name, most)
    return codes.astype("float32") * scales


class HalfWeight:
    """A Keras variable stored as float16."""

    def __init__(self, variable: Any) -> None:
        self._halves = _stored(np.asarray(variable).astype("float16"), variable, "halves")

    def matrix(self) -> tf.Tensor:
        """Returns the whole matrix as float32, as graph code."""
        return tf.cast(self._halves, tf.float32)

    def rows(self, ids: Any) -> tf.Tensor:
        """Looks up rows of a table, (...) -> (..., D) float32, as graph code."""
        return tf.cast(tf.gather(self._halves, ids), tf.float32)


class Int8Weight:
    """A Keras variable stored as int8, with its scales; see `int8_codes`."""

    def __init__(self, variable: Any, most: int = _MOST) -> None:
        codes, scales = int8_codes(np.asarray(variable), variable.name, most)
        self.codes = _stored(codes, variable, "codes")
        self.scales = _stored(scales, variable, "scales")

    def matrix(self) -> tf.Tensor:
        """Returns the whole matrix as float32, as graph code."""
        return tf.cast(self.codes, tf.float32) * self.scales

    def rows(self, ids: Any) -> tf.Tensor:
        """Looks up rows of a table, (...) -> (..., D) float32, as graph code."""
        codes = tf.gather(self.codes, ids)
        return tf.cast(codes, tf.float32) * tf.gather(self.scales, ids)


def _rows(stored: Int8Weight | HalfWeight, dtype: str, ids: Any) -> tf.Tensor:
    return tf.cast(stored.rows(ids), dtype)


def _stored(numbers: np.ndarray, variable: Any, part: str) -> tf.Variable:
    name = variable.path.replace(":", "_")
    return tf.Variable(numbers, trainable=False, name=f"{name}/{part}")


class WeightSubstitutes:
    """Substitutes of variables, used while the functions of models' common export are traced."""

    def __init__(self, models: Iterable[Any]) -> None:
        self._models = [model for model in models if isinstance(model, keras.Model)]
        # By identity: Keras variables compare by value.
        self._shared: dict[int, Any] = {}
        self._frozen: FrozenEncoders | None = None
        self._small: dict[int, Int8Weight | HalfWeight] = {}

    def share(self, variable: Any, kept: Any) -> None:
        """Stores `kept` instead of `variable`, which has the same values."""
        if variable is not kept:  # models may have one encoder object
            self._shared[id(variable)] = kept

    def store_small(self, precision: str | None) -> None:
        """Stores large weights as `Int8Weight` for "int8", else those that fit as `HalfWeight`."""
        fits = is_stored_as_int8 if (is_int8 := precision == "int8") else is_stored_as_half
        for model in self._models:
            multiplied = integer_kernels(model) if is_int8 else ()
            for variable in model.weights:
                kept = self._shared.get(id(variable), variable)
                if id(kept) in self._small or not fits(kept):
                    continue
                most = MOST_OF_WEIGHTS if id(variable) in multiplied else _MOST
                self._small[id(kept)] = Int8Weight(kept, most) if is_int8 else HalfWeight(kept)

    def freeze(self) -> None:
        """Makes weights constants, see `FrozenEncoders`; of int8 those that are multiplied so."""
        kept = {key for key, stored in self._small.items() if isinstance(stored, Int8Weight)}
        self._frozen = FrozenEncoders(self._models, lambda variable: id(variable) in kept)
        self._frozen.add(self._stored(layer.kernel) for layer in self._integer_layers())

    @property
    def is_frozen(self) -> bool:
        """Returns whether weights of encoders are constants."""
        return self._frozen is not None

    @property
    def multiplies_integers(self) -> bool:
        """Returns whether dense layers of encoders multiply integers."""
        return bool(self._integer_layers())

    @property
    def stores_int8(self) -> bool:
        """Returns whether weights are stored as int8."""
        return any(isinstance(stored, Int8Weight) for stored in self._small.values())

    def function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns graph code that computes with the substitutes of the variables."""
        frozen = self._frozen
        if not self._shared and not self._small and frozen is None:
            return function

        @functools.wraps(function)
        def computed(*arguments: Any) -> Any:
            functions = nullcontext() if frozen is None else frozen.as_functions(self._captured)
            products = integer_products(self._integer_layers(), self._stored)
            with self._captured(), self._rows(), products, functions:
                return function(*arguments)

        return computed

    def _captured(self) -> CapturedWeights:
        if self._frozen is None:
            return CapturedWeights(self._value)
        return CapturedWeights(self._value, self._frozen.constant)

    def _value(self, variable: Any) -> Any:
        """Returns the value of a variable's substitute, as graph code; None if it has none."""
        kept, stored = self._shared.get(id(variable)), self._stored(variable)
        if stored is not None:
            return stored.matrix()
        return None if kept is None else kept.value

    def _stored(self, variable: Any) -> Any:
        return self._small.get(id(self._shared.get(id(variable), variable)))

    def _integer_layers(self) -> list[Linear]:
        return [one for m in self._models if self.stores_int8 for one in integer_layers(m)]

    @contextmanager
    def _rows(self) -> Iterator[None]:
        """Makes embedding tables that are stored small look up rows before they dequantize."""
        layers = chain.from_iterable(model._flatten_layers() for model in self._models)
        tables = [layer for layer in layers if isinstance(layer, TokenEmbedding)]
        with ExitStack() as stack:
            for layer in tables if self._small else ():
                stored = self._stored(layer.embeddings)
                if stored is not None:
                    setattr(layer, _LOOK_UP, functools.partial(_rows, stored, layer.compute_dtype))
                    stack.callback(delattr, layer, _LOOK_UP)
            yield
