import pytest

from kbert.tasks.ner.options import EntityOptions


def test_the_keys_and_their_kinds():
    assert EntityOptions(tag_scheme="iobes").tag_scheme == "iobes"
    message = "`tag_scheme` must be one of bio, iobes. Received: tag_scheme=.bilou."
    with pytest.raises(ValueError, match=message):
        EntityOptions(tag_scheme="bilou")
