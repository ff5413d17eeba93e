"""Tables of the docs, made of kept results."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

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


def test_each_table_goes_to_the_page_that_names_it(
    program: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    results, pages = tmp_path / "results", tmp_path / "pages"
    results.mkdir()
    pages.mkdir()
    (results / "speed.json").write_text('{"rows": [{"seconds": 2}], "machine": {"cores": 2}}')
    (results / "scores.json").write_text('[{"f1": 0.5}]')
    (pages / "a.md").write_text("# A\n<!-- table speed rows -->\nold\n<!-- end -->\nwords\n")
    (pages / "b.md").write_text("<!-- table scores -->\n<!-- end -->\n")
    monkeypatch.setattr(
        "sys.argv", ["report", "--results", str(results), "--pages", str(pages)]
    )
    program("report").main()
    table = "| seconds |\n| ------- |\n| 2       |"
    assert (pages / "a.md").read_text() == (
        f"# A\n<!-- table speed rows -->\n\n{table}\n\nMachine: cores 2.  \n\n<!-- end -->\nwords\n"
    )
    table = "| f1  |\n| --- |\n| 0.5 |"
    assert (pages / "b.md").read_text() == f"<!-- table scores -->\n\n{table}\n\n<!-- end -->\n"


def test_the_tables_of_the_pages_are_those_of_the_results(program: Load, in_checkout):
    report = program("report")
    pages = sorted(in_checkout("docs").glob("benchmarks/*.md"))
    assert len(pages) > 5
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert report.rewritten(text, in_checkout("benchmarks") / "results") == text, page.name
