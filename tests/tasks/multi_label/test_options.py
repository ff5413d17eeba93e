import pytest

from kbert.tasks.multi_label.options import MultiLabelOptions


def test_the_keys_of_several_labels_and_their_kinds():
    assert MultiLabelOptions(label_separator=" ", threshold={"a": 0.2, "b": 0.9})
    told = r"`threshold` must be a number in \(0, 1\), or {label: number} .* Received: threshold=1"
    with pytest.raises(ValueError, match=told):
        MultiLabelOptions(threshold=1)
