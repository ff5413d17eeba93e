import pytest

from kbert.tasks.base.options import SequenceHeadOptions


def test_its_keys_and_their_kinds():
    keys = {field.name for field in SequenceHeadOptions.options()}
    assert {"dropout", "head"} <= keys
    assert SequenceHeadOptions(head="two_layer", dropout=0.0)
    told = "`dropout` must be a number in .0, 1.. Received: dropout=1.0"
    with pytest.raises(ValueError, match=told):
        SequenceHeadOptions(dropout=1.0)
