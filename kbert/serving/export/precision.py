"""The dtypes in which an export stores its weights and computes."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from kbert.models.encoder_arrays import named_weights
from kbert.serving.export.weight_substitutes import is_stored_as_int8, rounded_to_int8
from kbert.serving.format.metadata import PRECISIONS

logger = logging.getLogger(__name__)
# Linux's names of the instructions that multiply bfloat16.
_BFLOAT16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16", "svebf16"})
_CPU_INFO = Path("/proc/cpuinfo")


def in_precision(model: Any, precision: str | None) -> Any:
    """Converts a model to the precision of an export.

    Args:
        model: A Keras model that can be made from its configuration, as kbert's can. It is not
            changed.
        precision: "float32"; "bfloat16", for storage and computation: softmax, LayerNorm and logits
            as the layers compute them under that policy; or "int8", with the large weights
            quantized by `kbert.serving.export.weight_substitutes`, computing in float32. None
            leaves the model as it is.

    Returns:
        The model itself where nothing changes, otherwise a copy.

    Raises:
        ValueError: There is no such precision, or the model cannot be copied.
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
        for variable in named_weights(copy).values():
            if is_stored_as_int8(variable):
                variable.assign(rounded_to_int8(np.asarray(variable), variable.name))
    return copy


def computes_bfloat16(cpu_info: Path = _CPU_INFO) -> bool:
    """Returns whether the processor has instructions that multiply bfloat16, by Linux's file.

    If the file lists no features, the result is True, so that no warning is logged.
    """
    try:
        lines = cpu_info.read_text(encoding="utf-8").splitlines()
    except OSError:
        return True
    told = [line for line in lines if line.lower().startswith(("flags", "features"))]
    return not told or bool(_BFLOAT16_FLAGS & set(told[0].split()))


def _is_all_in(model: Any, dtype: str) -> bool:
    if not isinstance(model, keras.Model):
        return dtype == "float32"
    floats = {v.dtype for v in model.weights if "seed_generator" not in v.path}
    return model.compute_dtype == dtype and floats <= {dtype}


def _copied(model: Any, dtype: str) -> Any:
    """Returns a copy with another dtype policy, and the same weights."""
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
    """Returns a configuration in which every dtype policy is replaced."""
    if isinstance(config, Mapping):
        if config.get("class_name") == "DTypePolicy":
            return {**config, "config": {**config["config"], "name": dtype}}
        return {key: _with_policy(value, dtype) for key, value in config.items()}
    if isinstance(config, list | tuple):
        return type(config)(_with_policy(value, dtype) for value in config)
    return config
