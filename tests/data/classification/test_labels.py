"""Checks of labels before training. Expected values by hand."""

import numpy as np
import pytest

from kbert.data.classification.labels import (
    check_labels,
    label_names,
    label_probabilities,
    required_labels,
)
from kbert.data.classification.text_pairs import TextExamples


def examples(labels):
    n = 3 if labels is None else len(labels)
    return TextExamples(["x"] * n, None, labels, None, "f.tsv", list(range(2, n + 2)))


def test_label_names_are_sorted(recwarn):
    assert label_names(examples(["b", "a", "b", "a"])) == ["a", "b"]
    assert not recwarn.list


def test_a_label_seen_once_is_a_warning():
    message = r"f\.tsv: 2 of 3 labels occur only once: 'bilings' \(line 4\), 'odd' \(line 5\)\. "
    with pytest.warns(UserWarning, match=message):
        assert label_names(examples(["billing", "billing", "bilings", "odd"])) == [
            "bilings",
            "billing",
            "odd",
        ]


def test_names_of_soft_labels():
    assert label_names(examples([{"b": 1.0}, {"a": 0.5, "c": 0.5}])) == ["a", "b", "c"]


def test_labels_that_name_no_classes():
    with pytest.raises(ValueError, match=r"the labels must name classes.*such as 0\.5"):
        label_names(examples([0.5, 1.0]))
    with pytest.raises(ValueError, match=r"f\.tsv: the examples must have labels\. Received: none"):
        required_labels(examples(None))


def test_check_labels_passes_known_labels():
    check_labels(examples(["a", "b"]), ["a", "b", "c"])
    check_labels(examples([{"a": 0.5, "b": 0.5}]), ["a", "b"])
    check_labels(examples([[0.5, 0.5]]), ["a", "b"])


def test_check_labels_names_the_line_and_the_nearest_label():
    message = (
        r"f\.tsv, line 3: the label must be one of `billing`, `delivery`\. Received: 'deliverry'\."
        r" Did you mean `delivery`\?"
    )
    with pytest.raises(ValueError, match=message):
        check_labels(examples(["billing", "deliverry"]), ["billing", "delivery"])


def test_check_labels_of_probabilities():
    with pytest.raises(ValueError, match=r"line 2: .* must hold 3 probabilities.*Received: 2"):
        check_labels(examples([[0.5, 0.5]]), ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"line 2: the label must be one of.*'z'"):
        check_labels(examples([{"a": 0.5, "z": 0.5}]), ["a", "b"])


def test_label_probabilities():
    hard = label_probabilities(examples(["b", "a"]), ["a", "b"])
    np.testing.assert_array_equal(hard, [[0, 1], [1, 0]])
    assert hard.dtype == np.float32
    soft = label_probabilities(examples([{"b": 0.75, "a": 0.25}, {"b": 1.0}]), ["a", "b", "c"])
    np.testing.assert_array_equal(soft, [[0.25, 0.75, 0], [0, 1, 0]])
    arrays = label_probabilities(examples([[0.5, 0.5]]), ["a", "b"])
    np.testing.assert_array_equal(arrays, [[0.5, 0.5]])


def test_labels_that_look_alike_are_a_warning():
    message = (
        r"f\.tsv: labels that differ only in case are different classes: "
        r"'Billing' \(line 3\) and 'billing' \(line 2\)\."
    )
    with pytest.warns(UserWarning, match=message):
        names = ["billing", "Billing"]
        assert label_names(examples(names + names)) == ["Billing", "billing"]


@pytest.mark.parametrize(
    "labels", [["a", "b", "b ", "b ", "a", "b"], [{"a": 0.5, "b": 0.5}, {"a": 1.0}, {"b ": 1.0}]]
)
def test_labels_that_differ_in_blanks_are_refused(labels):
    lines = "2" if isinstance(labels[0], dict) else "3"
    message = (
        r"^f\.tsv: labels must differ in more than the blanks around them\. "
        rf"Received: 'b' \(line {lines}\) and 'b ' \(line 4\)$"
    )
    with pytest.raises(ValueError, match=message):
        label_names(examples(labels))
