"""Adapters and fusions in float64, where nothing but the formulas can differ from the reference."""

from typing import Any

import numpy as np
import pytest

from tests.models.adapters.test_adaptable import (
    CONFIGS,
    adapted,
    adapter_arrays,
    expected_states,
    fused,
    fusion_arrays,
)
from tests.small_bert import INPUTS, MASK


def largest_difference(model: Any, expected: Any) -> float:
    found = np.asarray(model.hidden_states(INPUTS)[-1])
    assert found.dtype == np.float64
    return float(np.abs(found - expected[-1])[MASK].max())


@pytest.mark.parametrize("kind", CONFIGS)
def test_numbers(kind):
    model, config = adapted(kind, dtype="float64"), CONFIGS[kind]
    more = {"lora_alpha": config.alpha} if "lora" in kind else {}
    more |= {} if "lora" in kind else {"bottleneck_activation": config.activation}
    arrays = [adapter_arrays(kind, part) for part in model.adapters.parts["one"].blocks]
    assert largest_difference(model, expected_states(model, arrays, **more)) < 1e-6


def test_numbers_of_a_fusion():
    model = fused(dtype="float64")
    arrays = [fusion_arrays(model, layer) for layer in range(2)]
    expected = expected_states(model, arrays, bottleneck_activation="tanh")
    assert largest_difference(model, expected) < 1e-6
