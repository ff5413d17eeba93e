"""Labels out of columns: names, scores, probabilities. Expected values by hand."""

import pytest

from kbert.data.classification.labels import read_labels
from kbert.data.tables.table import Table


def rows(*values):
    return Table("f.tsv", ("label",), [[v] for v in values], list(range(2, 2 + len(values))))


def objects(*values):
    return Table("f.jsonl", ("label",), [{"label": v} for v in values], [1, 2, 3][: len(values)])


def test_names_stay_as_they_are():
    assert read_labels(rows("b", "a", "b"), "label", regression=False) == ["b", "a", "b"]


def test_json_numbers_and_booleans_become_their_text():
    assert read_labels(objects(1, "x", True), "label", regression=False) == ["1", "x", "true"]


def test_scores():
    assert read_labels(rows("1", "2.50", "-3e1"), "label", regression=True) == [1.0, 2.5, -30.0]


def test_an_empty_column_means_no_labels():
    assert read_labels(rows("", " "), "label", regression=False) is None
    assert read_labels(objects(None, None), "label", regression=True) is None


def test_a_single_missing_label_is_an_error():
    message = r"f\.tsv, line 3, column `label`: each row must have a label.*1 of 3 rows without"
    for missing in ("", " ", "\u3000"):
        with pytest.raises(ValueError, match=message):
            read_labels(rows("a", missing, "b"), "label", regression=False)


@pytest.mark.parametrize("value", ["a\ud800", {"\ud800": 1.0}])
def test_a_name_that_utf8_cannot_hold_is_an_error(value):
    message = r"f\.jsonl, line 1, column `label`: the value must be text that UTF-8.* escape\.$"
    with pytest.raises(ValueError, match=message):
        read_labels(objects(value), "label", regression=False)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1,5", "high", "1e999"])
def test_a_score_must_be_finite(value):
    message = rf"f\.tsv, line 3, column `label`: the label must be a finite number.*'{value}'"
    with pytest.raises(ValueError, match=message):
        read_labels(rows("1.0", value), "label", regression=True)


def test_json_scores_need_regression():
    with pytest.raises(ValueError, match=r"line 1.*must be a string or an integer.*regression"):
        read_labels(objects(0.5, 1.5), "label", regression=False)
    assert read_labels(objects(0.5, 2), "label", regression=True) == [0.5, 2.0]


def test_soft_labels_in_json():
    soft = [{"a": 0.25, "b": 0.75}, {"b": 1}]
    assert read_labels(objects(*soft), "label", regression=False) == soft
    lists = [[0.1, 0.9], [1.0, 0.0]]
    assert read_labels(objects(*lists), "label", regression=False) == lists


def test_soft_labels_in_columns():
    table = Table("f.csv", ("text", "p1", "p2"), [["x", "0.2", "0.8"], ["y", "1", "0"]], [2, 3])
    expected = [{"p1": 0.2, "p2": 0.8}, {"p1": 1.0, "p2": 0.0}]
    assert read_labels(table, ["p1", "p2"], regression=False) == expected
    named = read_labels(table, {"yes": "p2", "no": "p1"}, regression=False)
    assert named == [{"yes": 0.8, "no": 0.2}, {"yes": 0.0, "no": 1.0}]


@pytest.mark.parametrize(
    "bad, message",
    [
        ({"a": 0.5, "b": 0.6}, r"line 2, column `label`: probabilities must .* sum to 1"),
        ({"a": -0.5, "b": 1.5}, r"probabilities must be at least 0"),
        ({"a": "x", "b": 1.0}, r"probabilities must be at least 0"),
        ({"a": True}, r"probabilities must be at least 0"),
        ("a", r"line 2, column `label`: the label must be probabilities as in the first row"),
        ([0.5, 0.5], r"the label must be probabilities as in the first row"),
    ],
)
def test_bad_soft_labels(bad, message):
    with pytest.raises(ValueError, match=message):
        read_labels(objects({"a": 1.0}, bad), "label", regression=False)


def test_lists_of_probabilities_have_one_length():
    with pytest.raises(ValueError, match=r"line 2.*probabilities as in the first row"):
        read_labels(objects([0.5, 0.5], [1.0]), "label", regression=False)


def test_one_column_of_probabilities_is_not_enough():
    with pytest.raises(ValueError, match=r"`label` must give two columns of probabilities"):
        read_labels(rows("1"), ["label"], regression=False)
