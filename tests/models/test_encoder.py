"""The protocol of encoders."""

import pytest

from kbert.models.adapter_bert import AdapterBert
from kbert.models.bert import Bert
from kbert.models.encoder import Encoder

SIZES = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}


@pytest.mark.parametrize("kind, more", [(Bert, {}), (AdapterBert, {"adapter_dim": 2})])
def test_the_encoders_have_it(kind, more):
    assert isinstance(kind(20, max_sequence_length=8, **SIZES, **more), Encoder)


def test_anything_else_has_not():
    assert not isinstance(object(), Encoder)
