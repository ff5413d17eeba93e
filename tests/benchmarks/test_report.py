"""Tables of the docs, made of kept results."""

from collections.abc import Callable
from types import ModuleType

Load = Callable[[str], ModuleType]


def test_what_was_measured_on_several_texts_has_a_line_for_each(program: Load):
    row = {
        "seed": 1,
        "one": {"bleu": 40.08, "signature": "tok:13a"},
        "two": {"bleu": 7.897502914109032, "signature": "tok:13a"},
    }
    by_part = program("report").by_part
    assert by_part(row) == [
        {"seed": 1, "measured on": "one", "bleu": 40.08},
        {"seed": 1, "measured on": "two", "bleu": 7.897502914109032},
    ]
    assert by_part({"seed": 1, "f1": 0.5}) == [{"seed": 1, "f1": 0.5}]


def test_numbers_have_as_many_digits_as_can_be_read(program: Load):
    numbers = [40.08, 7.897502914109032, 1455.17, 0.0001, 0.123456789012, -1.23456789012, None, 3]
    lines = program("side_by_side.results").table([{"a_b": number} for number in numbers])
    head, _, *cells = [line.strip("| ") for line in lines.splitlines()]
    assert head == "a b"
    assert cells == ["40.08", "7.90", "1455", "0.0001", "0.1235", "-1.23", "", "3"]
