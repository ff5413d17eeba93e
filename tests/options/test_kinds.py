import dataclasses

import pytest

from kbert.options import kinds as kinds


@pytest.mark.parametrize(
    "kind, good, bad, expected",
    [
        (kinds.text("a file"), ["a", None], ["", " ", 1, True], "a file"),
        (kinds.column(), ["a", 0, 3, None], ["", -1, 1.5, True], "a column's name or its index"),
        (kinds.choice("a", "b"), ["a", "b"], ["c", None, 1], "one of a, b"),
        (kinds.flag(), [True, False], [1, "true", None], "true or false"),
        (kinds.whole(1), [1, 7], [0, 1.0, "1", True, None], "a whole number, at least 1"),
        (kinds.whole(1, optional=True), [None, 1], [0], "at least 1"),
        (
            kinds.number("a number above 0", lambda v: v > 0),
            [1, 0.5],
            [0, "1", True, None, float("nan"), float("inf")],
            "a number above 0",
        ),
        (kinds.rate(), [0, 0.5], [1, -0.1, None, "0"], "a number in [0, 1)"),
        (kinds.rate(optional=True), [None, 0.5], [1.0], "a number in [0, 1)"),
        (kinds.patterns(), [["a"], ["*", "*"], None], [[], [""], "a.txt", [1]], "list of files"),
        (kinds.names(), [["a", "b"], None], [["a"], ["a", "a"], "ab", ["a", 1]], "two different"),
        (
            kinds.weights(),
            ["none", "balanced", {"a": 1, "b": 0.5}],
            ["even", {}, {"a": 0}, {"a": "1"}, {1: 1.0}, None, [1]],
            "none, balanced, or {label: weight}",
        ),
        (
            kinds.thresholds(),
            [0.5, {"a": 0.1, "b": 0.9}],
            [0, 1.0, "0.5", {}, {"a": 1}, {1: 0.5}, None, [0.5]],
            "a number in (0, 1), or {label: number}",
        ),
        (kinds.separator(), ["|", " "], ["", None, 1], "text that stands between two labels"),
        (
            kinds.grid(("epochs", "batch_size")),
            [True, False, {"epochs": [1, 2]}],
            [{"epochs": []}, {"epochs": [None]}, {"rate": [1]}, {}, [1], "yes", None],
            "for each of some of epochs, batch_size",
        ),
    ],
)
def test_a_kind_takes_its_values_and_names_what_it_expects(kind, good, bad, expected):
    for value in good:
        kind.check("key", value)
    for value in bad:
        with pytest.raises(ValueError) as raised:
            kind.check("key", value)
        assert str(raised.value).startswith("`key` must be ")
        assert expected in str(raised.value)
        assert str(raised.value).endswith(f"Received: key={value!r}")


def test_the_text_of_an_option_becomes_a_value():
    assert kinds.column().from_text("3") == 3
    assert kinds.column().from_text("#1 String") == "#1 String"
    assert kinds.names().from_text("no, yes") == ["no", "yes"]
    assert kinds.patterns().from_text("a.txt, b/*.gz") == ["a.txt", "b/*.gz"]
    assert kinds.weights().from_text("{a: 2, b: 5e-1}") == {"a": 2, "b": 0.5}
    assert kinds.weights().from_text("balanced") == "balanced"
    assert kinds.thresholds().from_text("{a: 0.2}") == {"a": 0.2}


def test_labels_that_are_numbers_are_names_on_the_command_line():
    weights = kinds.weights().from_text("{0: 1, 1: 5.5, a: 3}")
    assert weights == {"0": 1, "1": 5.5, "a": 3}
    assert kinds.weights().from_text("{true: 2, false: 1}") == {"true": 2, "false": 1}
    assert kinds.thresholds().from_text("{0: 0.3}") == {"0": 0.3}
    assert kinds.thresholds().from_text("0.3") == 0.3


def test_a_field_without_kind_is_refused():
    @dataclasses.dataclass
    class Plain:
        a: int = 1

    with pytest.raises(ValueError, match="`described` must be made by `option`. Received: 'a'"):
        kinds.kind_of(dataclasses.fields(Plain)[0])
