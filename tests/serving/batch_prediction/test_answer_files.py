"""Files of answers: their formats, and that a stop at any moment changes no byte."""

import csv
import gzip
import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kbert.serving.batch_prediction.answer_files import answer_columns, answer_file
from kbert.serving.batch_prediction.row_files import Block, read_blocks

ROWS = [
    {"id": "1", "text": "a\tb\nc", "label": "x"},
    {"id": "2", "text": 'say "x"', "label": "y"},
    {"id": "3", "text": "中\ud800", "label": "z"},
]
ANSWERS = [{"label": f"l{i}", "score": 0.5 + i, "scores": {"a": 1.0}} for i in range(3)]
COLUMNS = ["id", "text", "label"]


def block(number: int, rows: list[dict[str, Any]], schema: Any = None) -> Block:
    columns = list(dict.fromkeys(name for row in rows for name in row)) or COLUMNS
    return Block(number, columns, rows, [f"line {i + 1}" for i in range(len(rows))], schema)


def written(path: Path, *blocks: list[dict[str, Any]]) -> bytes:
    with answer_file(path, {"model": "m"}) as file:
        for number, rows in enumerate(blocks):
            file.write(block(number, rows), ANSWERS[: len(rows)])
        file.join(len(blocks))
    assert [one for one in path.parent.iterdir() if one.name.startswith(".")] == []
    return path.read_bytes()


def test_json_lines(tmp_path: Path):
    data = written(tmp_path / "a.jsonl", ROWS[:2], ROWS[2:])
    found = [json.loads(line) for line in data.decode("utf-8").splitlines()]
    # What the input has already keeps its name.
    assert found[1] == {
        **ROWS[1],
        "predicted_label": "l1",
        "score": 1.5,
        "scores": {"a": 1.0},
    }
    assert found[2]["text"] == "中\ud800"
    assert gzip.decompress(written(tmp_path / "a.jsonl.gz", ROWS[:2], ROWS[2:])) == data


def test_tab_separated(tmp_path: Path):
    lines = written(tmp_path / "a.tsv", ROWS[:2], ROWS[2:]).decode("utf-8").split("\n")
    assert lines[0].split("\t") == [*COLUMNS, "predicted_label", "score", "scores"]
    assert lines[1].split("\t") == ["1", "a b c", "x", "l0", "0.5", '{"a": 1.0}']
    assert lines[3].split("\t")[1] == "中?" and lines[4:] == [""]


def test_comma_separated(tmp_path: Path):
    written(tmp_path / "a.csv", ROWS[:2], ROWS[2:])
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["text"] for row in found] == ["a\tb\nc", 'say "x"', "中?"]
    assert found[0]["scores"] == '{"a": 1.0}'


def test_what_ends_a_line_is_quoted(tmp_path: Path):
    """A lone CR too: without quotes it would split the row for every reader."""
    rows = [{"id": str(i), "text": f"a{end}b", "label": end} for i, end in enumerate("\r\n,")]
    written(tmp_path / "a.csv", rows)
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert [{name: row[name] for name in COLUMNS} for row in found] == rows
    (again,) = read_blocks(tmp_path / "a.csv")
    assert [{name: row[name] for name in COLUMNS} for row in again.rows] == rows


def test_numbers_that_json_does_not_have(tmp_path: Path):
    row = {"id": "1", "text": "a", "label": math.nan, "more": [math.inf, {"x": -math.inf}]}
    found = json.loads(written(tmp_path / "a.jsonl", [row]), parse_constant=pytest.fail)
    assert (found["label"], found["more"]) == (None, [None, {"x": None}])
    assert b'"[null, {""x"": null}]"' in written(tmp_path / "a.csv", [row])


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.tsv", "a.csv", "a.parquet"])
def test_a_stop_changes_no_byte(tmp_path: Path, name: str):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason='pip install ".[parquet]"')
    rows = [{"id": str(i), "text": "t"} for i in range(6)]
    parts = [rows[:2], rows[2:4], rows[4:]]
    expected = written(tmp_path / name, *parts)
    again = tmp_path / "again"
    again.mkdir()
    made = []
    for stop in range(4):  # before each block, and before all is joined
        try:
            with answer_file(again / name, {"model": "m"}) as file:
                for number, part in enumerate(parts):
                    if not file.has(number):
                        made.append(number)
                        file.write(block(number, part), ANSWERS[:2])
                    if number == stop:
                        raise KeyboardInterrupt
                file.join(3)
        except KeyboardInterrupt:
            assert not (again / name).exists()
    assert made == [0, 1, 2]
    assert (again / name).read_bytes() == expected


def test_another_run_says_that_it_waits(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path = tmp_path / "a.tsv"
    with ThreadPoolExecutor(1) as pool:
        with answer_file(path, {"model": "m"}) as file:
            second = pool.submit(written, path, ROWS)
            deadline = time.monotonic() + 3
            while not caplog.messages and time.monotonic() < deadline:
                time.sleep(0.01)
            file.write(block(0, ROWS), ANSWERS)
            file.join(1)
        with pytest.raises(FileExistsError, match="`--output` must not exist yet"):
            second.result()
    assert caplog.messages == [f"Another run is writing {path}; this one waits for it."]


@pytest.mark.parametrize("name", ["a.jsonl", "a.tsv", "a.csv", "a.csv.gz"])
def test_no_rows(tmp_path: Path, name: str):
    def data(columns: list[str]) -> bytes:
        path = tmp_path / f"{len(columns)}{name}"
        with answer_file(path, {}) as file:
            file.write(Block(0, columns, [], []), [])
            file.join(1)
        read = path.read_bytes()
        return gzip.decompress(read) if name.endswith("gz") else read

    header = {"a.jsonl": b"", "a.tsv": b"id\ttext\n"}.get(name, b"id,text\n")
    assert (data(["id", "text"]), data([])) == (header, b"")


def test_another_model_does_not_go_on(tmp_path: Path):
    with answer_file(tmp_path / "a.tsv", {"model": "m", "input": "i"}) as file:
        file.write(block(0, ROWS), ANSWERS)
    message = "another model than that of the stopped run, whose answers lie in .*remove that"
    with pytest.raises(ValueError, match=message):
        with answer_file(tmp_path / "a.tsv", {"model": "other", "input": "i"}):
            pass


def test_columns_without_a_block_do_not_count(tmp_path: Path):
    # What a process leaves that is killed while it writes the first block.
    (folder := tmp_path / ".a.tsv.answers").mkdir()
    (folder / "columns.json").write_text('{"input": ["old"], "answers": {"entity": "entity"}}')
    assert written(tmp_path / "a.tsv", ROWS).startswith(b"id\ttext\tlabel\tpredicted_label")


def test_answers_beside_those_of_another_model(tmp_path: Path):
    taken = [{"text": "a", "label": "x", "predicted_label": "y", "score": 1}]
    found = written(tmp_path / "a.tsv", taken).splitlines()
    assert found[0].startswith(b"text\tlabel\tpredicted_label\tscore\tpredicted_predicted_label")
    assert answer_columns(["a", "predicted_a"], ["a"]) == {
        "a": "predicted_a",
        "predicted_a": "predicted_predicted_a",
    }


def test_columns_stay(tmp_path: Path):
    with answer_file(tmp_path / "a.tsv", {}) as file:
        file.write(block(0, ROWS), ANSWERS)
        with pytest.raises(ValueError, match="line 1: a row must have the col.*'new', which the"):
            file.write(block(1, [{**ROWS[0], "new": "1"}]), ANSWERS[:1])
    with answer_file(tmp_path / "a.jsonl", {}) as file:
        file.write(block(0, [{"text": "a"}]), ANSWERS[:1])
        file.write(block(1, [{"text": "a", "new": 1}]), ANSWERS[:1])
        with pytest.raises(ValueError, match="Received: 'label', which is that of an answer"):
            file.write(block(2, ROWS[:1]), ANSWERS[:1])


def test_where_it_cannot_be(tmp_path: Path):
    (tmp_path / "a.tsv").touch()
    with pytest.raises(FileExistsError, match="`--output` must not exist yet"):
        with answer_file(tmp_path / "a.tsv", {}):
            pass
    with pytest.raises(FileNotFoundError, match="`--output` must be in a folder that exists"):
        with answer_file(tmp_path / "none" / "a.tsv", {}):
            pass
