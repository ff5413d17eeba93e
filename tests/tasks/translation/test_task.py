from types import SimpleNamespace

import numpy as np
import pytest

from kbert.tasks.translation.task import TASK
from tests.small_translator import small_subwords, small_translator


def test_a_search_has_room_for_more_translations():
    model = SimpleNamespace(beam_size=5, nbest=1)
    TASK.give_more(model, 3)
    assert (model.beam_size, model.nbest) == (5, 3)
    TASK.give_more(model, 8)
    assert (model.beam_size, model.nbest) == (8, 8)


@pytest.mark.parametrize("fused", [False, True])
def test_the_encoder_of_a_translator(fused):
    model = small_translator(fused)
    tokens, layers = TASK.attention(model, ["a ball"])
    assert tokens == [*small_subwords().tokens("a ball"), "</s>"]
    assert [layer.shape for layer in layers] == [(2, len(tokens), len(tokens))]
    np.testing.assert_allclose(layers[0].sum(axis=-1), 1.0, rtol=1e-5)
    with pytest.raises(ValueError, match="`texts` must be one text for a translator. Received: 2"):
        TASK.attention(model, ["a", "b"])
