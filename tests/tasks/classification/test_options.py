import pytest

from kbert.tasks.classification.options import ClassificationOptions


def test_its_keys_and_their_kinds():
    assert {"labels", "text_a"} <= {field.name for field in ClassificationOptions.options()}
    assert ClassificationOptions(class_weights={"a": 1, "b": 2.5})
    with pytest.raises(ValueError, match="`labels` must be a list of two different names or more"):
        ClassificationOptions(labels=["a", "a"])
