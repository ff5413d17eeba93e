"""Hints at the end of error messages."""

from kbert.hints import nearest


def test_nearest():
    assert nearest("Lable", ["text", "label"]) == " Did you mean `label`?"
    assert nearest("zzz", ["text", "label"]) == ""
    assert nearest("text", ["TEXT"]) == " Did you mean `TEXT`?"
