import pytest

from kbert.tasks.ner.options import EntityOptions


def test_its_keys_and_their_kinds():
    keys = {field.name for field in EntityOptions.options()}
    assert {"label", "tag_scheme"} <= keys
    assert EntityOptions(tag_scheme="iobes", label=3)
    told = "`tag_scheme` must be one of bio, iobes. Received: tag_scheme=.bilou."
    with pytest.raises(ValueError, match=told):
        EntityOptions(tag_scheme="bilou")
