import pytest

from kbert.tasks.span_tagging.options import SpanOptions


def test_the_keys_and_their_kinds():
    assert not SpanOptions(soft=False).soft
    with pytest.raises(ValueError, match="`soft` must be true or false. Received: soft=1"):
        SpanOptions(soft=1)
