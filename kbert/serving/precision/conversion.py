"""Models in the precision of an export."""

import logging
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from kbert.models.weights import named_weights
from kbert.serving.format.version_folders import PRECISIONS
from kbert.serving.precision.processor import computes_bfloat16
from kbert.serving.precision.rounding import (
    choose_roundings,
    integer_layers,
    integer_matrices,
)
from kbert.serving.precision.small_weights import is_stored_as_int8, rounded_to_int8

logger = logging.getLogger(__name__)


def in_precision(model: Any, precision: str | None, like: Any = None) -> Any:
    """Converts a model to the precision of an export: itself if nothing changes, else a copy.

    "bfloat16" is for storage and computation: softmax, LayerNorm and logits as the layers compute
    them under that policy. "int8" quantizes the large weights; for what layers multiply see
    `kbert.serving.precision.integer_products`; `like` is a model of this function with which it is
    to share the encoder. None leaves the model as it is. Raises ValueError for another precision,
    and for a model that Keras cannot make from its configuration.
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
    dtype = "bfloat16" if precision == "bfloat16" else "float32"
    if precision != "int8" and _is_all_in(model, dtype):
        return model
    copy = _copied(model, dtype)
    if precision == "int8":
        choose_roundings(copy, like)
        roundings = integer_matrices(copy)
        if not integer_layers(copy):
            logger.warning(
                "No layer of this export multiplies integers, which takes an x86 processor and "
                "widths of at least 64: it is a quarter as large, but slower than in float32."
            )
        for variable in named_weights(copy).values():
            if is_stored_as_int8(variable):
                rounding = roundings.get(id(variable))
                variable.assign(rounded_to_int8(np.asarray(variable), variable.name, rounding))
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
