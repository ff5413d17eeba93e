"""Values in messages. Expected texts by hand."""

from kbert.data.tables.columns import shortened


def test_values():
    assert shortened(None) == "nothing"
    assert shortened("a") == "'a'"
    assert shortened([1, {}]) == "[1, {}]"
    assert shortened("x" * 100) == "'" + "x" * 79 + "..."
