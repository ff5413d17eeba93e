import json

import pytest

from kbert.cli.commands.verb import write_line, write_result


def test_results_and_lines(capsys):
    write_result({"ü": [1]})
    write_line({"a": "b\nc"})
    text = capsys.readouterr().out
    assert json.loads(text[: text.index("}\n") + 1]) == {"ü": [1]}
    assert text.splitlines()[-1] == '{"a": "b\\nc"}'


def test_lists_of_numbers_are_lines(capsys):
    value = {"a": [[1, 2.5e-3], [-3, None]], "b": [], "c": ["[ 1 ]", 2], "d": [{"e": [1]}]}
    write_result(value)
    text = capsys.readouterr().out
    assert json.loads(text) == value
    assert text.splitlines()[1:5] == ['  "a": [', "    [1, 0.0025],", "    [-3, null]", "  ],"]


def test_nan_is_no_json():
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_result({"a": float("nan")})
