import numpy as np

from kbert.tasks.registry import task_of
from tests.small_pipelines import small_classifier


def test_tokens_and_distributions():
    model = small_classifier(pair=True)
    tokens, layers = task_of(model).attention(model, ["a film", "good"])
    assert tokens == ["[CLS]", "a", "film", "[SEP]", "good", "[SEP]"]
    assert [layer.shape for layer in layers] == [(2, 6, 6)]
    np.testing.assert_allclose(layers[0].sum(axis=-1), 1.0, rtol=1e-5)
