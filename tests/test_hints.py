"""Hints at the end of error messages."""

from kbert.hints import nearest, nearest_options


def test_nearest():
    assert nearest("Lable", ["text", "label"]) == " Did you mean `label`?"
    assert nearest("zzz", ["text", "label"]) == ""
    assert nearest("text", ["TEXT"]) == " Did you mean `TEXT`?"


def test_options_that_an_unknown_one_may_stand_for():
    known = ["--learning-rate", "--epochs", "--loss", "--batch-size", "--batch-tokens", "--label"]
    for given, expected in (
        ("--lr", ["--learning-rate"]),
        ("--bs", ["--batch-size"]),
        ("--epoch", ["--epochs"]),
        ("--batch", ["--batch-size", "--batch-tokens"]),
        ("--learning_rates", ["--learning-rate"]),
        ("--gpu", []),
    ):
        assert nearest_options(given, known) == expected
