import json
import subprocess
import sys

import pytest

from kbert.cli.frame.results import write_line, write_report, write_result


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


def test_a_report_is_json_where_no_terminal_shows_its_lines(capsys, monkeypatch):
    write_report(["memory: 3 GiB", "kbert works."], {"memory": 3})
    lines = "memory: 3 GiB\nkbert works.\n"
    assert capsys.readouterr() == ('{\n  "memory": 3\n}\n', lines)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    write_report(["memory: 3 GiB", "kbert works."], {"memory": 3})
    assert capsys.readouterr() == ("", lines)


def test_a_report_in_one_stream_is_lines_alone():
    code = "from kbert.cli.frame.results import write_report; write_report(['fine'], {'memory': 3})"
    command = [sys.executable, "-c", code]
    both = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert both.stdout == "fine\n"
    apart = subprocess.run(command, capture_output=True, text=True)
    assert (json.loads(apart.stdout), apart.stderr) == ({"memory": 3}, "fine\n")


def test_nan_is_no_json():
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_result({"a": float("nan")})
