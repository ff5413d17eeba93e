"""Pairs, pairs with scores, and triplets, from tables."""

import pytest

from kbert.data.classification.text_tuples import (
    check_tuple_columns,
    read_tuple_examples,
    tuple_columns,
)


def written(folder, text, name="t.tsv"):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_the_layout_of_sts(tmp_path):
    path = written(tmp_path, "index\tsentence1\tsentence2\tscore\n7\ta\tb\t5.000\n8\tc\td\t0.5\n")
    found = read_tuple_examples(path)
    assert found.texts == (["a", "c"], ["b", "d"]) and found.labels == [5.0, 0.5]
    assert found.ids == ["7", "8"] and found.lines == [2, 3] and found.negatives is None


def test_pairs_and_triplets(tmp_path):
    pairs = read_tuple_examples(written(tmp_path, "anchor,positive\na,b\n", "t.csv"))
    assert pairs.texts == (["a"], ["b"]) and pairs.labels is None
    lines = '{"anchor": "a", "positive": "b", "negative": "c"}\n'
    triplets = read_tuple_examples(written(tmp_path, lines, "t.jsonl"))
    assert triplets.texts == (["a"], ["b"], ["c"])
    assert triplets.select([0]).texts == triplets.texts


def test_columns_by_name_and_by_index(tmp_path):
    path = written(tmp_path, "x\ty\tz\na\tb\t1\n")
    named = read_tuple_examples(path, "y", "x", "z")
    assert named.texts == (["b"], ["a"]) and named.labels == [1.0]
    headless = read_tuple_examples(written(tmp_path, "a\tb\n"), 0, 1)
    assert headless.texts == (["a"], ["b"])


@pytest.mark.parametrize(
    "text, columns, message",
    [
        ("x\ty\na\tb\n", {}, "line 1: `text_a` and `text_b` must be given where no columns"),
        ("x\ty\na\tb\n", {"text_a": "x"}, "`text_a` and `text_b` must be given together for pair"),
        ("x\ty\na\tb\n", {"text_a": "x", "text_b": "z"}, "have a column `z`"),
        ("x\ty\na\tb\n", {"text_a": "x", "text_b": "x"}, "must be different columns. Rece"),
        ("text_a\ttext_b\tscore\na\tb\thigh\n", {}, "line 2, column `score`"),
        (
            "anchor\tpositive\tnegative\tscore\na\tb\tc\t1\n",
            {},
            "line 1: there must be scores or third texts, not both",
        ),
    ],
)
def test_errors(tmp_path, text, columns, message):
    with pytest.raises(ValueError, match=message):
        read_tuple_examples(written(tmp_path, text), **columns)


def test_columns_are_looked_at_first(tmp_path):
    path = written(tmp_path, "text_a\ttext_b\na\tb\n")
    check_tuple_columns(path)
    with pytest.raises(ValueError, match="have a column `y`"):
        check_tuple_columns(path, label="y")
    assert ["anchor", "positive"] in tuple_columns(2) and tuple_columns(1) == []
