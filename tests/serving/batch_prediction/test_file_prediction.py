"""All rows of a file: each gets its own answer, in order, whatever stops the run."""

import json
from pathlib import Path
from typing import Any

import pytest

from kbert.serving.batch_prediction.file_prediction import predict_file


def lengths(rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """The model of these tests: how long each text of a row is."""
    return [{"lengths": [len(text) for text in row]} for row in rows]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def predicted(source: Path, output: Path, *inputs: str, **kwargs: Any) -> list[Any]:
    settings = {"answer": lengths, "made_of": {"model": "m"}, "block_rows": 3, **kwargs}
    predict_file(source, output, inputs or ("text",), **settings)
    return [json.loads(line) for line in output.read_text("utf-8").splitlines()]


def test_every_row_gets_its_answer(tmp_path: Path):
    rows = [{"id": i, "text": "x" * (i * 7 % 5)} for i in range(10)]
    told: list[Any] = []
    source = write(tmp_path / "in.jsonl", rows)
    found = predicted(
        source, tmp_path / "out.jsonl", on_progress=lambda share, n: told.append((share, n))
    )
    assert found == [{**row, "lengths": [len(row["text"])]} for row in rows]
    assert [n for _, n in told] == [3, 6, 9, 10, 10] and told[-1][0] == 1.0


def test_rows_with_choices(tmp_path: Path):
    rows = [
        {"context": "c", "choices": ["a", "bb"]},
        {"context": "", "choices": ["a", "bb", "ccc"]},
        {"context": "cc", "choices": ["", "b"]},
    ]
    source = write(tmp_path / "in.jsonl", rows)
    found = predicted(source, tmp_path / "out.jsonl", "context", "choices")
    assert [row["lengths"] for row in found] == [[1, 1, 2], [0, 1, 2, 3], [2, 0, 1]]
    (tmp_path / "in.tsv").write_text('context\tchoices\nc\t["a", "bb"]\n')
    found = predicted(tmp_path / "in.tsv", tmp_path / "out2.jsonl", "context", "choices")
    assert found[0]["lengths"] == [1, 1, 2]


def test_a_stopped_run_goes_on(tmp_path: Path):
    rows = [{"text": "x" * i} for i in range(10)]
    source = write(tmp_path / "in.jsonl", rows)
    expected = predicted(source, tmp_path / "whole.jsonl")
    asked = []

    def failing(part: list[Any]) -> list[Any]:
        asked.append(len(part[0][0]))
        if len(asked) in (2, 4):
            raise KeyboardInterrupt
        return lengths(part)

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            predicted(source, tmp_path / "out.jsonl", answer=failing)
        assert not (tmp_path / "out.jsonl").exists()
    assert predicted(source, tmp_path / "out.jsonl", answer=failing) == expected
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert asked == [0, 3, 3, 6, 6, 9]  # no block twice, but for those that were stopped


def test_what_answered_nothing_leaves_nothing(tmp_path: Path):
    source = write(tmp_path / "in.jsonl", [{"txt": "a"}])
    with pytest.raises(ValueError, match="line 1: the file must have the column `text`"):
        predicted(source, tmp_path / "out.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]
    write(source, [{"text": "ab"}])
    assert predicted(source, tmp_path / "out.jsonl")[0]["lengths"] == [2]


def test_another_input_is_refused(tmp_path: Path):
    asked = []

    def stopped(part: list[Any]) -> Any:
        asked.append(part)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return lengths(part)

    source = write(tmp_path / "in.jsonl", [{"text": "a"}] * 9)
    with pytest.raises(KeyboardInterrupt):
        predicted(source, tmp_path / "out.jsonl", answer=stopped)
    write(source, [{"text": "b"}])
    with pytest.raises(ValueError, match="Received: another input than that of the stopped run"):
        predicted(source, tmp_path / "out.jsonl")
    with pytest.raises(ValueError, match="Received: another input and another model than"):
        predicted(source, tmp_path / "out.jsonl", made_of={"model": "other"})


@pytest.mark.parametrize(
    "row, inputs, message",
    [
        ({"txt": "a"}, ("text",), "in.jsonl, line 2: a row must have `text`, the inputs.*: txt"),
        ({"text": 3}, ("text",), "line 2, column `text`: the value must be text. Received: '3'"),
        ({"text": None}, ("text",), "line 2, column `text`: the value must be text"),
        ({"choices": "a"}, ("choices",), "column `choices`: the value must be a JSON list of"),
        ({"choices": ["a"]}, ("choices",), "must be a list of two texts or more"),
        ({"choices": ["a", 1]}, ("choices",), "column `choices`: the value must be text"),
    ],
)
def test_bad_rows_are_told(tmp_path: Path, row: Any, inputs: tuple[str, ...], message: str):
    good = {"text": "a", "choices": ["a", "b"]}
    source = write(tmp_path / "in.jsonl", [good, row])
    with pytest.raises(ValueError, match=message):
        predicted(source, tmp_path / "out.jsonl", *inputs)


def test_half_a_surrogate_pair_is_text(tmp_path: Path):
    source = write(tmp_path / "in.jsonl", [{"text": "a\ud800"}])
    seen: list[Any] = []

    def answer(part: list[Any]) -> list[dict[str, Any]]:
        seen.extend(part)
        return lengths(part)

    assert predicted(source, tmp_path / "out.jsonl", answer=answer)[0]["text"] == "a\ud800"
    assert seen == [("a\ufffd",)]


def write_table(folder: Path, end: str, names: list[str], rows: list[list[str]]) -> Path:
    path = folder / f"in.{end}"
    if end == "jsonl":
        return write(path, [dict(zip(names, row)) for row in rows])
    if end == "parquet":
        arrow = pytest.importorskip("pyarrow", reason='pip install ".[parquet]"')
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table(dict(zip(names, map(list, zip(*rows))))), path)
        return path
    between = "\t" if end == "tsv" else ","
    path.write_text("".join(between.join(row) + "\n" for row in [names, *rows]))
    return path


@pytest.mark.parametrize("end", ["jsonl", "tsv", "csv", "parquet"])
def test_columns_of_other_names(tmp_path: Path, end: str):
    """The first that are there; a column called as the input says something else."""
    source = write_table(tmp_path, end, ["mail", "text"], [["a", "xxx"], ["bb", "xxx"]])
    for number, columns in enumerate(([["mail"]], [["message"], ["mail"], ["text"]])):
        found = predicted(source, tmp_path / f"{number}.jsonl", columns=columns)
        assert [row["lengths"] for row in found] == [[1], [2]]
    pair = {"columns": [["text", "mail"]]}
    found = predicted(source, tmp_path / "pair.jsonl", "text_a", "text_b", **pair)
    assert [row["lengths"] for row in found] == [[3, 1], [3, 2]]
    told = "(line|row) 1: the file must have the column `a` or `b`, which the model reads. Receiv"
    with pytest.raises(ValueError, match=told):
        predicted(source, tmp_path / "none.jsonl", columns=[["a"], ["b"]])


def test_what_is_not_there(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="`--input` must be a file. Received: .*none.tsv"):
        predicted(tmp_path / "none.tsv", tmp_path / "out.jsonl")
    write(tmp_path / "in.jsonl", [])
    assert predicted(tmp_path / "in.jsonl", tmp_path / "out.jsonl") == []


def gathered(rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """A model whose answers depend on what is answered together."""
    return [{"label": len(rows), "first": rows[0][0]} for _ in rows]


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_parts_in_a_row_are_the_whole(tmp_path: Path, parts: int):
    rows = [{"text": "x" * i, "label": "given"} for i in range(10)]  # four blocks
    source = write(tmp_path / "in.jsonl", rows)
    for end in ("jsonl", "tsv"):
        whole = tmp_path / f"whole.{end}"
        settings = {"answer": gathered, "made_of": {}, "block_rows": 3}
        predict_file(source, whole, ("text",), **settings)
        counts, lines = [], []
        for index in range(1, parts + 1):
            one = tmp_path / f"{index}.{parts}.{end}"
            counts.append(
                predict_file(source, one, ("text",), part=(index, parts), **settings)
            )
            found = one.read_text("utf-8").splitlines()
            lines += found if end == "jsonl" or index == 1 else found[1:]
            assert end == "jsonl" or found[0] == "text\tlabel\tpredicted_label\tfirst"
        assert lines == whole.read_text("utf-8").splitlines()
        assert sum(counts) == 10 and min(counts) > 0


def test_a_part_has_the_columns_of_the_file(tmp_path: Path):
    """As in the whole: a later row must not bring the column of an answer."""
    rows = [{"text": "a"}, {"text": "b"}, {"text": "c", "lengths": 1}]
    source = write(tmp_path / "in.jsonl", rows)
    with pytest.raises(ValueError, match="line 3: .*'lengths', which is that of an answer"):
        predicted(source, tmp_path / "2.jsonl", block_rows=2, part=(2, 2))


def test_parts_in_parquet_have_the_types_of_the_whole(tmp_path: Path):
    pytest.importorskip("pyarrow", reason='pip install ".[parquet]"')
    import pyarrow.parquet as parquet

    numbers = [1, 2.5, 3, 4, None, 6]
    source = write(tmp_path / "in.jsonl", [{"text": "a", "n": n} for n in numbers])
    schemas = []
    for part in ((1, 1), (1, 3), (2, 3), (3, 3)):
        output = tmp_path / f"{part}.parquet"
        settings = {"answer": lengths, "made_of": {}, "block_rows": 2, "part": part}
        predict_file(source, output, ("text",), **settings)
        schemas.append(parquet.read_schema(output))
    assert all(schema.equals(schemas[0]) for schema in schemas)


def test_the_columns_are_chosen_once(tmp_path: Path):
    rows = [{"text": "a"}, {"text": "bb"}, {"text": "ccc", "text_a": "other"}]
    source = write(tmp_path / "in.jsonl", rows)
    columns = [["text_a"], ["text"]]
    found = predicted(source, tmp_path / "out.jsonl", block_rows=2, columns=columns)
    assert [row["lengths"] for row in found] == [[1], [2], [3]]


def test_a_stopped_part_goes_on_as_the_same_part(tmp_path: Path):
    source = write(tmp_path / "in.jsonl", [{"text": "x" * i} for i in range(12)])
    asked = []

    def failing(rows: list[Any]) -> list[Any]:
        asked.append(rows)
        if len(asked) == 2:
            raise RuntimeError("stop")
        return lengths(rows)

    output = tmp_path / "2.jsonl"
    with pytest.raises(RuntimeError, match="stop"):
        predicted(source, output, answer=failing, part=(2, 2))
    for part in ((1, 2), (1, 1)):
        with pytest.raises(ValueError, match="Received: another part than that"):
            predicted(source, output, part=part)
    found = predicted(source, output, part=(2, 2), answer=failing)
    assert [len(row["text"]) for row in found] == [*range(6, 12)]
    assert [rows[0] for rows in asked] == [("x" * 6,), ("x" * 9,), ("x" * 9,)]


@pytest.mark.parametrize(
    "part, told",
    [
        ((0, 2), "from 1 to their number. Received: part=0/2"),
        ((3, 2), "Received: part=3/2"),
        ((1, 3), "at most as many parts as .* has blocks of 3 rows, 2. Received: part=1/3"),
    ],
)
def test_parts_that_are_not_there(tmp_path: Path, part: tuple[int, int], told: str):
    source = write(tmp_path / "in.jsonl", [{"text": "a"}] * 6)
    with pytest.raises(ValueError, match=told):
        predicted(source, tmp_path / "out.jsonl", part=part)
    assert [file.name for file in tmp_path.iterdir()] == ["in.jsonl"]
