"""What an encoder makes of the stack; what it computes is tested with each encoder."""

from typing import Any

import numpy as np
import pytest

from kbert.models.bert import Bert
from kbert.models.encoder_model import EncoderModel
from kbert.tasks.ner.head import TokenClassification
from tests.small_bert import INPUTS, MASK, small_bert


class Doubled(EncoderModel):
    """Two layers that share the block of another model, after embeddings times two."""

    gradient_checkpointing, causal = False, False

    def __init__(self) -> None:
        super().__init__()
        self.other = small_bert(num_layers=2)
        self.embeddings, self.pooler = self.other.embeddings, self.other.pooler
        self.vocabulary_size = self.other.vocabulary_size
        self.max_sequence_length = self.other.max_sequence_length

    @property
    def layer_blocks(self) -> list[Any]:
        return [self.other.blocks[0]] * 2

    def _embedded(self, *args: Any) -> Any:
        return super()._embedded(*args) * 2.0

    def call(self, inputs: Any, training: bool | None = None) -> dict[str, Any]:
        return self._outputs(inputs, training)


def test_layers_may_share_a_block_and_embeddings_may_be_changed():
    model = Doubled()
    states = model.hidden_states(INPUTS)
    block = model.other.blocks[0]
    mask = model.other._mask(INPUTS)
    expected = [model.other.embeddings(INPUTS["token_ids"], INPUTS["segment_ids"]) * 2.0]
    for _ in range(2):
        expected.append(block(expected[-1], attention_mask=mask))
    for found, wanted in zip(states, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    last = model(INPUTS)["sequence_output"]
    np.testing.assert_allclose(last[MASK], states[-1][MASK], atol=1e-6)
    assert len(model.attention_scores(INPUTS)) == 2


def test_an_encoder_that_is_made_frozen_stays_so_under_a_head():
    encoder = Bert.from_config({**small_bert().get_config(), "trainable": False})
    assert not any(variable.trainable for variable in encoder.variables)
    head = TokenClassification(encoder, 2)
    own = {variable.path for variable in encoder.variables}
    assert head.trainable_variables and not own & {v.path for v in head.trainable_variables}


def test_blocks_must_be_named():
    with pytest.raises(NotImplementedError, match="EncoderModel must name the blocks"):
        EncoderModel().layer_blocks
