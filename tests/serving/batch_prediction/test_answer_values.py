"""Columns of Parquet: their types, and what would be changed without a word."""

from pathlib import Path
from typing import Any

import pytest

from kbert.serving.batch_prediction.answer_files import answer_file
from tests.serving.batch_prediction.test_answer_files import ANSWERS, block, written


def test_parquet(tmp_path: Path):
    arrow = pytest.importorskip("pyarrow", reason='pip install ".[parquet]"')
    import pyarrow.parquet as parquet

    rows = [{"id": i, "text": str(i), "none": None, "list": [1]} for i in range(3)]
    written(tmp_path / "a.parquet", rows[:2], rows[2:])
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.column("id").to_pylist() == [0, 1, 2]
    assert table.column("score").to_pylist() == [0.5, 1.5, 0.5]
    assert table.column("scores").to_pylist() == ['{"a": 1.0}'] * 3
    assert table.column("list").to_pylist() == ["[1]"] * 3
    assert table.schema.field("none").type == arrow.string()
    schema = arrow.schema({"text": arrow.large_string(), "when": arrow.date32(), "n": arrow.int8()})
    with answer_file(tmp_path / "b.parquet", {}) as file:
        row = {"text": "a", "when": None, "n": 3}
        file.write(block(0, [row], schema), ANSWERS[:1])
        file.join(1)
    assert parquet.read_schema(tmp_path / "b.parquet").field("n").type == arrow.int8()
    with answer_file(tmp_path / "c.parquet", {}) as file:
        file.write(block(0, [{"id": 1}]), ANSWERS[:1])
        with pytest.raises(ValueError, match="values of the column 'id' must be of one type"):
            file.write(block(1, [{"id": "x"}]), ANSWERS[:1])


def test_vectors_in_parquet_are_numbers(tmp_path: Path):
    arrow = pytest.importorskip("pyarrow", reason='pip install ".[parquet]"')
    import pyarrow.parquet as parquet

    rows = [{"text": "a", "embedding": "theirs"}]
    with answer_file(tmp_path / "a.parquet", {}) as file:
        for number in range(2):
            file.write(block(number, rows), [{"embedding": [0.5, float(number)]}])
        file.join(2)
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.schema.field("predicted_embedding").type == arrow.list_(arrow.float32())
    assert table["predicted_embedding"].to_pylist() == [[0.5, 0.0], [0.5, 1.0]]
    assert table["embedding"].to_pylist() == ["theirs"] * 2


@pytest.mark.parametrize(
    "first, then, kind",
    [(1, 2.5, "int64"), (1.5, True, "double"), (1, True, "int64"), (1, 2**70, "int64")],
)
def test_parquet_changes_no_number(tmp_path: Path, first: Any, then: Any, kind: str):
    pytest.importorskip("pyarrow", reason='pip install ".[parquet]"')
    with answer_file(tmp_path / "a.parquet", {}) as file:
        file.write(block(0, [{"price": first}]), ANSWERS[:1])
        told = f"line 1 to line 1: the values of the column 'price' must be of one type, .*{kind}"
        with pytest.raises(ValueError, match=told):
            file.write(block(1, [{"price": then}]), ANSWERS[:1])
        file.write(block(1, [{"price": 3.0}]), ANSWERS[:1])  # it is whole


def test_half_an_emoji_in_parquet(tmp_path: Path):
    pytest.importorskip("pyarrow", reason='pip install ".[parquet]"')
    import pyarrow.parquet as parquet

    written(tmp_path / "a.parquet", [{"text": "cut \ud83d"}])
    assert parquet.read_table(tmp_path / "a.parquet")["text"].to_pylist() == ["cut \ufffd"]
    with answer_file(tmp_path / "b.parquet", {}) as file:
        with pytest.raises(ValueError, match="line 1: the values of the column 'n' must be"):
            file.write(block(0, [{"n": 2**70}]), ANSWERS[:1])
