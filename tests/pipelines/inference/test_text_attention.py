import numpy as np
import pytest

from kbert.pipelines.inference.text_attention import attention_of_text
from tests.small_pipelines import small_classifier
from tests.small_translator import small_subwords, small_translator


def test_tokens_and_distributions():
    model = small_classifier(pair=True)
    tokens, layers = attention_of_text(model, ["a film", "good"])
    assert tokens == ["[CLS]", "a", "film", "[SEP]", "good", "[SEP]"]
    assert [layer.shape for layer in layers] == [(2, 6, 6)]
    np.testing.assert_allclose(layers[0].sum(axis=-1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("fused", [False, True])
def test_the_encoder_of_a_translator(fused):
    model = small_translator(fused)
    tokens, layers = attention_of_text(model, ["a ball"])
    assert tokens == [*small_subwords().tokens("a ball"), "</s>"]
    assert [layer.shape for layer in layers] == [(2, len(tokens), len(tokens))]
    np.testing.assert_allclose(layers[0].sum(axis=-1), 1.0, rtol=1e-5)
    with pytest.raises(ValueError, match="`texts` must be one text for a translator. Received: 2"):
        attention_of_text(model, ["a", "b"])
