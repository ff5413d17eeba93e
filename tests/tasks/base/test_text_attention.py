import numpy as np

from kbert.tasks.base.text_attention import attention_of_text
from tests.small_pipelines import small_classifier


def test_tokens_and_distributions():
    model = small_classifier(pair=True)
    tokens, layers = attention_of_text(model, ["a film", "good"])
    assert tokens == ["[CLS]", "a", "film", "[SEP]", "good", "[SEP]"]
    assert [layer.shape for layer in layers] == [(2, 6, 6)]
    np.testing.assert_allclose(layers[0].sum(axis=-1), 1.0, rtol=1e-5)
