"""Keras' loops of a model with adapters within compute with those that are active now."""

import numpy as np
import pytest

from kbert.models.feature_based import FeatureBasedEncoder
from kbert.optimization.steps import adapter_states
from tests.pipelines.test_task_model_adapters import put_on, take_off
from tests.small_bert import INPUTS, small_bert


@pytest.mark.parametrize("features, kind", [(None, "pfeiffer"), ("last", "lora")])
def test_predict_of_an_encoder(features, kind):
    encoder = small_bert()
    model = encoder if features is None else FeatureBasedEncoder(encoder, features, "linear")
    seen = []

    def agrees():
        """Whether `predict` says what the layers compute; how far that is from before."""
        found = model.predict(INPUTS, verbose=0)["pooled_output"]
        np.testing.assert_allclose(found, model(INPUTS)["pooled_output"], atol=1e-5)
        seen.append(found)
        return np.abs(found - seen[-2]).max() if len(seen) > 1 else None

    agrees()
    put_on(encoder, kind, 3)
    assert agrees() > 0.01
    if kind == "lora":
        encoder.merge_adapter("one")
        assert agrees() < 1e-5
    else:
        take_off(encoder)
        assert agrees() > 0.01


def test_states_of_all_encoders_within():
    encoder = small_bert()
    model = FeatureBasedEncoder(encoder, "last", "linear")
    before = adapter_states(model)
    assert len(before) == 1 and adapter_states(encoder) == before
    put_on(encoder, "pfeiffer", 3)
    assert adapter_states(model) == [encoder.adapter_state] != before
