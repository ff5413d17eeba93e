import pytest

from kbert.checkpoints.huggingface_files import is_head, modern_names


def test_prefix_and_old_names() -> None:
    report: list[str] = []
    found = modern_names(["bert.embeddings.LayerNorm.gamma", "classifier.weight"], report)
    assert found == {
        "embeddings.LayerNorm.weight": "bert.embeddings.LayerNorm.gamma",
        "classifier.weight": "classifier.weight",
    }
    assert report == ["Read gamma and beta as weight and bias in 1 LayerNorm tensors."]


def test_one_weight_twice() -> None:
    with pytest.raises(ValueError, match="must be there once. Received: bert.x and x"):
        modern_names(["x", "bert.x"], [])


def test_heads() -> None:
    assert is_head("cls.predictions.bias") and is_head("qa_outputs.weight")
    assert not is_head("pooler.dense.weight") and not is_head("classifiers.weight")
