"""The encoder-decoder that learns to align, beside a NumPy reference from the papers."""

from typing import Any

import numpy as np
import pytest

from kbert.models.encoder_decoders.bahdanau import Bahdanau
from tests import numpy_sequence_models as reference
from tests.models.encoder_decoders import check_sequence_model as checks

SETTINGS = [
    ({"cell": "gru", "score": "additive"}, {"encoder_dim": 5, "attention_dim": 7}),
    ({"cell": "gru_reset_after", "score": "bilinear"}, {"embedding_dim": 4, "tied": "target"}),
    ({"cell": "gru", "score": "dot"}, {"encoder_dim": 3}),
]


def small(**more: Any) -> Bahdanau:
    return checks.randomized(Bahdanau(hidden_dim=6, **{**checks.SIZES, **more}))


@pytest.mark.parametrize("settings, more", SETTINGS)
def test_numbers(settings: dict[str, Any], more: dict[str, Any]):
    def wanted(w: Any, source: list[int], target: list[int]) -> Any:
        logits, attention, _ = reference.bahdanau(w, source, target, **settings)
        return logits, [attention]

    check = checks.check_all if settings == SETTINGS[0][0] else checks.check_parts
    check(small(**settings, **more), wanted)


def test_a_long_short_term_memory():
    model = small(cell="lstm")
    checks.check_steps(model)
    checks.check_padding_and_order(model)
    checks.check_saved(model)


def test_states_between_steps_in_few_bits():
    checks.check_states_between_steps(small(dtype="mixed_bfloat16"), ("initial", "values", "keys"))


def test_one_step():
    """The weights of a step, and its new state."""
    model = small()
    weights = checks.reference_weights(model)
    source = checks.SOURCE[0].tolist()
    annotations = reference.bahdanau_annotations(weights, source, cell="gru")
    before = np.linspace(-1, 1, 6)
    logits, attention, after = reference.bahdanau_step(
        weights, annotations, before, 4, cell="gru", score="additive"
    )
    state = model.start_decoding(model.encode({n: a[:1] for n, a in checks.INPUTS.items()}))
    np.testing.assert_allclose(state["values"][0], annotations, atol=1e-5)
    state["initial"] = before[None, None].astype("float32")
    found, new = model.decode_step(
        np.array([[4]]), np.int32(0), np.zeros((1, 1, 1), "int32"), state
    )
    np.testing.assert_allclose(found[0, 0], logits, atol=1e-5)
    np.testing.assert_allclose(new["initial"][0, 0], after, atol=1e-5)
    assert attention.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"score": "cosine"}, r"`score` must be one of \['additive', 'bilinear', 'dot'\]"),
        ({"score": "dot"}, '"dot" needs annotations as wide as the states. Received: 12 and 6'),
        ({"attention_dim": 0}, "`attention_dim` must be at least 1"),
        ({"encoder_dim": -1}, "`units` must be at least 1. Received: units=-1"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        small(**arguments)
