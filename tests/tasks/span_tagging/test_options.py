import pytest

from kbert.tasks.span_tagging.options import SpanTaggingOptions


def test_its_keys_and_their_kinds():
    assert {"soft", "dropout", "stride"} <= {field.name for field in SpanTaggingOptions.options()}
    assert SpanTaggingOptions(soft=False)
    with pytest.raises(ValueError, match="`soft` must be true or false. Received: soft=1"):
        SpanTaggingOptions(soft=1)
