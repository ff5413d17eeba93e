"""The encoder-decoder without attention, beside a NumPy reference from the papers."""

from typing import Any

import numpy as np
import pytest

from kbert.models.encoder_decoders.rnn import RnnEncoderDecoder
from tests import numpy_sequence_models as reference
from tests.models.encoder_decoders import check_sequence_model as checks

SETTINGS = [
    ({"cell": "gru", "context": "each_step"}, {}),
    ({"cell": "lstm", "context": "initial", "num_layers": 2, "reversed_source": True}, {}),
    ({"cell": "gru_reset_after", "context": "each_step", "num_layers": 2}, {"embedding_dim": 4}),
    ({"cell": "gru", "context": "initial"}, {"tied": "target"}),
    ({"cell": "gru", "context": "initial"}, {"tied": "none", "embedding_dim": 4}),
    ({"cell": "lstm", "context": "each_step"}, {"tied": "all", "source_vocabulary_size": None}),
]


def small(**more: Any) -> RnnEncoderDecoder:
    return checks.randomized(RnnEncoderDecoder(hidden_dim=6, **{**checks.SIZES, **more}))


@pytest.mark.parametrize("settings, more", SETTINGS)
def test_numbers(settings: dict[str, Any], more: dict[str, Any]):
    if more.get("tied") == "all":
        more = {**more, "vocabulary_size": 11}

    def wanted(w: Any, source: list[int], target: list[int]) -> Any:
        return reference.rnn(w, source, target, **{"num_layers": 1, **settings}).logits, []

    # One of each kind of state is searched with, and computed in few bits.
    check = checks.check_all if settings in (SETTINGS[0][0], SETTINGS[1][0]) else checks.check_parts
    check(small(**settings, **more), wanted)


def test_the_end_of_a_long_source_is_near():
    """The vector of a reversed source begins with its last token: order matters, padding not."""
    model = small(reversed_source=True)
    wide = {name: np.pad(array, ((0, 0), (0, 4))) for name, array in checks.INPUTS.items()}
    for name, state in model.encode(checks.INPUTS).items():
        np.testing.assert_array_equal(model.encode(wide)[name], state)
    plain = small()
    plain.set_weights(model.get_weights())
    backwards = {**checks.INPUTS, "source_token_ids": checks.SOURCE.copy()}
    for row, length in enumerate(checks.LENGTHS):
        backwards["source_token_ids"][row, :length] = checks.SOURCE[row, :length][::-1]
    found = plain.encode(backwards)
    for name, state in model.encode(checks.INPUTS).items():
        np.testing.assert_allclose(found[name], state, atol=1e-6)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"cell": "elman"}, r"`cell` must be one of \['gru', 'gru_reset_after', 'lstm'\]"),
        ({"context": "never"}, r"`context` must be one of \['each_step', 'initial'\]"),
        ({"num_layers": 0}, "`num_layers` must be at least 1. Received: num_layers=0"),
        ({"tied": "some"}, r"`tied` must be one of \['all', 'target', 'none'\]"),
        ({"tied": "all"}, '`tied` must not be "all" for vocabularies of different sizes'),
        (
            {"context": "initial", "tied": "target", "embedding_dim": 4},
            '`embedding_dim` must be `hidden_dim` with context="initial" and tied embeddings',
        ),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        small(**arguments)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_states_between_steps_in_few_bits(cell: str):
    model = small(dtype="mixed_bfloat16", cell=cell, num_layers=2)
    checks.check_states_between_steps(model, ("layer_0", "layer_1"))
