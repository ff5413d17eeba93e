"""The words of errors about values that do not go with each other."""

import dataclasses

import pytest

from kbert.options.configuration import check_default, wrong


@dataclasses.dataclass
class Config:
    """Two keys with defaults and one that must be given."""

    name: str
    patience: int = 3
    metric: str | None = None


def test_defaults_say_nothing():
    assert check_default(Config("run"), ("patience", "metric"), "without validation") is None


def test_a_given_value_is_refused():
    with pytest.raises(ValueError) as error:
        check_default(Config("run", metric="f1"), ("patience", "metric"), "without validation")
    assert str(error.value) == (
        "`metric` must be left out without validation. Received: metric='f1'"
    )


def test_only_the_keys_that_were_named_are_checked():
    check_default(Config("run", metric="f1"), ("patience",), "without validation")


def test_the_first_of_several_is_named():
    config = Config("run", patience=5, metric="f1")
    with pytest.raises(ValueError, match="`patience` must be left out"):
        check_default(config, ("patience", "metric"), "without validation")


def test_the_error_names_the_key_what_was_expected_and_what_came():
    error = wrong("patience", "at least 1", 0)
    assert isinstance(error, ValueError)
    assert str(error) == "`patience` must be at least 1. Received: patience=0"
    assert str(wrong("metric", "a metric's name", "")).endswith("Received: metric=''")
