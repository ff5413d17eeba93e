"""Classes as targets: names, ids, distributions, and weights of classes."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from kbert.tasks.classification.inputs import LabelBatching
from tests.small_pipelines import small_classifier


@pytest.fixture(scope="module")
def model():
    return small_classifier()


def test_targets(model):
    expected = np.array([1, 0, 2], "int32")
    for y in (
        ["yes", "no", "perhaps"],
        np.array(["yes", "no", "perhaps"]),
        [b"yes", b"no", b"perhaps"],
        [1, 0, 2],
        np.array([1.0, 0.0, 2.0]),
        np.array([[1], [0], [2]]),
        [["yes"], ["no"], ["perhaps"]],
    ):
        found = model.encode_targets(y)
        assert found.dtype == "int32"
        np.testing.assert_array_equal(found, expected)
    soft = [[0.2, 0.3, 0.5], [1, 0, 0]]
    np.testing.assert_array_equal(model.encode_targets(soft), np.array(soft, "float32"))
    assert model.encode_targets([]).shape == (0,)


@pytest.mark.parametrize(
    "y, message",
    [
        (
            ["yes", "Yes", "maybe"],
            r"`y` must hold labels of \['no', 'yes', 'perhaps'\]. Received: \['Yes', 'maybe'\]",
        ),
        ([0, 3], r"`y` must hold ids in \[0, 3\). Received: ids from 0 to 3"),
        ([-1, 0], r"`y` must hold ids in \[0, 3\). Received: ids from -1 to 0"),
        ([0.0, 0.5], "`y` must hold names, ids or distributions. Received: fractions such as 0.5"),
        ([0.0, float("nan")], r"a label for each text. Received: a missing label, y\[1\]=nan"),
        ([[0.5, 0.5]], r"`y` must have 3 probabilities a row. Received: shape \(1, 2\)"),
        ([[0.5, 0.5, 0.5]], r"`y` must have probabilities .* sum 1. Received: \[0.5, 0.5, 0.5\]"),
        ([[2.0, -1.0, 0.0]], r"`y` must have probabilities in each row, of sum 1. Received: \[2.0"),
        ([[0, float("nan"), 1]], r"`y` must have probabilities in each row, of sum 1. Received:"),
        (["yes", None], r"`y` must hold labels of .* Received: \['None'\]"),
    ],
)
def test_wrong_targets(model, y, message):
    with pytest.raises(ValueError, match=message):
        model.encode_targets(y)


def with_labels(labels):
    return LabelBatching(SimpleNamespace(labels=labels, label_names=labels, num_labels=len(labels)))


@pytest.mark.parametrize(
    "labels, y, expected",
    [
        (["1", "0"], [1, 0, 1], [0, 1, 0]),
        (["1", "2", "3"], np.array([3.0, 1.0]), [2, 0]),
        (["-1", "1"], [[-1], [1]], [0, 1]),
        (["True", "False"], [True, False], [0, 1]),
        (["0", "1"], [1, 0], [1, 0]),
        (["b", "a"], [1, 0], [1, 0]),
        (["b", "a"], [True, False], [1, 0]),
        (["1", "0"], [True, False], [0, 1]),
        (["1", "0"], ["1", "0"], [0, 1]),
    ],
)
def test_numbers_are_names_where_the_labels_are_other_numbers(labels, y, expected):
    """As positions they would train a model that answers the reverse of what it was shown."""
    batching = with_labels(labels)
    assert batching.encode_targets(y).tolist() == expected
    flat = np.asarray(y).reshape(-1)
    if flat.dtype.kind != "U":
        assert batching.encode_numbers(tf.constant(flat)).numpy().tolist() == expected


def test_numbers_that_are_no_names_are_told():
    batching = with_labels(["1", "2"])
    with pytest.raises(ValueError, match=r"labels of \['1', '2'\]. Received: \['0'\]"):
        batching.encode_targets([0, 1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="`y` must hold labels of"):
        batching.encode_numbers(tf.constant([0, 1]))
    assert batching.encode_class_weight({2: 3.0}) == {0: 1.0, 1: 3.0}
    with pytest.raises(ValueError, match=r"labels of \['1', '2'\], .* Received: 0"):
        batching.encode_class_weight({0: 3.0})


def test_weights_of_classes_are_a_dict():
    message = "`class_weight` must be a dict .* n / .classes .* Received: 'balanced'"
    with pytest.raises(ValueError, match=message):
        with_labels(["a", "b"]).encode_class_weight("balanced")
    for wrong in (-1, float("nan"), "heavy"):
        with pytest.raises(ValueError, match=f"`class_weight` must hold .*: 'b': {wrong!r}"):
            with_labels(["a", "b"]).encode_class_weight({"b": wrong})


@pytest.mark.parametrize(
    "ids, message",
    [
        ([3, 0], r"`y` must hold ids in \[0, 3\)"),
        ([0, -1], r"`y` must hold ids in \[0, 3\)"),
        ([3.0, 0.0], r"`y` must hold ids in \[0, 3\)"),
        ([0.5, 1.0], "ids or distributions. Received: fractions in"),
        ([0.0, float("nan")], "ids or distributions. Received: fractions in"),
    ],
)
def test_wrong_ids_in_a_dataset(model, ids, message):
    dataset = tf.data.Dataset.from_tensors((["a b", "c"], ids))
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        next(iter(model.batching.numbers(dataset)))


def test_distributions_in_a_dataset_stay(model):
    soft = tf.constant([[0.2, 0.3, 0.5], [1, 0, 0]])
    assert model.batching.encode_numbers(soft) is soft


def test_weights_of_classes_by_name(model):
    encode = model.batching.encode_class_weight
    assert encode(None) is None
    assert encode({"yes": 2}) == {0: 1.0, 1: 2.0, 2: 1.0}
    assert encode({np.int64(2): 3.0, "no": 0.5}) == {0: 0.5, 1: 1.0, 2: 3.0}
    truth = with_labels(["True", "False"]).encode_class_weight({True: 5.0, np.bool_(False): 2.0})
    assert truth == {0: 5.0, 1: 2.0}
    for key in ("maybe", 3):
        message = rf"`class_weight` must have labels of .*'perhaps'\], .* Received: {key!r}"
        with pytest.raises(ValueError, match=message):
            model.batching.encode_class_weight({key: 1.0})


def test_names_in_a_dataset_become_ids(model):
    found = model.batching.encode_names(tf.constant(["perhaps", "no"]))
    assert found.dtype == tf.int32 and found.numpy().tolist() == [2, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="`y` must hold labels of"):
        model.batching.encode_names(tf.constant(["never"]))
