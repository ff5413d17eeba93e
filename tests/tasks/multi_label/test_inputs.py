"""Several labels as targets: names, ids, rows of numbers; thresholds that are tuned."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from kbert.tasks.multi_label.inputs import PreparedLabels
from tests.small_pipelines import small_multi_label_classifier

EXPECTED = [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


@pytest.fixture(scope="module")
def model():
    return small_multi_label_classifier()


@pytest.mark.parametrize(
    "y",
    [
        [["joy", "love"], [], ["anger"]],
        [("love", "joy"), (), {"anger"}],
        [[b"joy", b"love"], [], [b"anger"]],
        [np.array(["joy", "love"]), np.array([]), np.array(["anger"])],
        [[0, 2], [], [1]],
        [np.array([2, 0]), np.array([], int), np.array([1])],
        EXPECTED,
        np.array(EXPECTED),
        np.array(EXPECTED, bool),
        np.array(EXPECTED, "float64"),
        tf.constant(EXPECTED),
    ],
)
def test_targets(model, y):
    found = model.encode_targets(y)
    assert found.dtype == "float32" and found.tolist() == EXPECTED


def test_a_table_has_a_column_for_each_label(model):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(EXPECTED, columns=["joy", "anger", "love"])
    for one in (table, table[["love", "joy", "anger"]]):
        assert model.encode_targets(one).tolist() == EXPECTED
    with pytest.raises(ValueError, match=r"a column for each of .* Received: \['joy', 'love'\]"):
        model.encode_targets(table[["joy", "love"]])


def test_soft_targets_and_none(model):
    soft = [[0.5, 0.25, 1.0], [0.0, 0.0, 0.0]]
    np.testing.assert_array_equal(model.encode_targets(soft), np.array(soft, "float32"))
    assert model.encode_targets([[], []]).tolist() == [[0, 0, 0]] * 2
    assert model.encode_targets([]).shape == (0, 3)


@pytest.mark.parametrize(
    "y, message",
    [
        ([["joy"], ["Joy", "hate"]], r"labels of \['joy', .*'love'\]. .*: \['Joy', 'hate'\]"),
        ([["joy", "joy"]], r"lists of different labels. Received: \['joy', 'joy'\]"),
        (["joy", "love"], "`y` must hold a list of labels for each text, .* Received: 'joy'"),
        ([0, 1], "`y` must hold a list of labels for each text, .* Received: 0"),
        ([None, ["joy"]], "`y` must hold a list of labels for each text, .* Received: None"),
        ([["joy", None]], r"labels of .*Received: \['None'\]"),
        ([[0, 3]], r"lists of different ids in \[0, 3\), or rows of 3 .* Received: \[0, 3\]"),
        ([[1, 1]], r"lists of different ids .* Received: \[1, 1\]"),
        ([[0.5]], r"lists of different ids .* Received: \[0.5\]"),
        (np.zeros((2, 2)), r"`y` must have 3 numbers a row, one a label. Received: shape \(2, 2\)"),
        (np.zeros(2), r"`y` must have 3 numbers a row, one a label. Received: shape \(2,\)"),
        (np.full((1, 3), 2.0), "`y` must hold 0, 1 or numbers between. .* from 2.0 to 2.0"),
        (np.full((1, 3), np.nan), "`y` must hold 0, 1 or numbers between."),
    ],
)
def test_wrong_targets(model, y, message):
    with pytest.raises(ValueError, match=message):
        model.encode_targets(y)


def test_lists_of_ids_that_may_be_rows_of_0_and_1():
    two = small_multi_label_classifier(["joy", "anger"])
    message = r"`y` must be names, or an array .* Received: \[0, 1\] for the labels \['joy', 'ang"
    with pytest.raises(ValueError, match=message):
        two.encode_targets([[0, 1], [1, 0]])
    for numbers in ([[0.0, 1.0]], [[False, True]], np.array([[0, 1]])):
        assert two.encode_targets(numbers).tolist() == [[0.0, 1.0]]
    assert two.encode_targets([[0, 1], [0, 0]]).tolist() == [[0.0, 1.0], [0.0, 0.0]]
    assert two.encode_targets([[0, 1], [1]]).tolist() == [[1.0, 1.0], [0.0, 1.0]]
    with pytest.raises(ValueError, match=r"Received: \[0\] for the labels \['joy'\]"):
        small_multi_label_classifier(["joy"]).encode_targets([[0], [0]])


def test_numbers_are_names_where_the_labels_are_other_numbers():
    model = small_multi_label_classifier(["1", "2", "3"])
    expected = [[1, 0, 0], [0, 0, 1], [1, 1, 0]]
    assert model.encode_targets([[1], [3], [1, 2]]).tolist() == expected
    assert model.encode_targets([["1"], ["3"], ["1", "2"]]).tolist() == expected
    assert model.encode_targets([[1.0], [3.0], [1.0, 2.0]]).tolist() == expected
    assert model.encode_targets(expected).tolist() == expected
    with pytest.raises(ValueError, match=r"labels of \['1', '2', '3'\]. Received: \['0'\]"):
        model.encode_targets([[0], [1]])


def test_weights_of_classes_are_refused(model):
    assert model.batching.encode_class_weight(None) is None
    message = r"`class_weight` must be None for several labels .* Received: {'joy': 2.0}"
    with pytest.raises(ValueError, match=message):
        model.batching.encode_class_weight({"joy": 2.0})


def test_names_in_a_dataset(model):
    ragged = tf.ragged.constant([["love", "joy"], [], ["anger"]])
    for names in (ragged, ragged.to_tensor("")):
        found = model.batching.encode_names(names)
        assert found.dtype == tf.float32 and found.numpy().tolist() == EXPECTED
    with pytest.raises(tf.errors.InvalidArgumentError, match="`y` must hold labels of"):
        model.batching.encode_names(tf.constant([["joy", "never"]]))
    with pytest.raises(ValueError, match=r"targets must be names \(B, K\), or numbers \(B, C\)"):
        model.batching.encode_names(tf.constant(["joy"]))


def test_ragged_names_of_a_dataset_are_encoded(model):
    names = tf.ragged.constant([["love", "joy"], [], ["anger"]])
    dataset = tf.data.Dataset.from_tensor_slices((["a film", "bad", "good"], names)).batch(3)
    ((_, targets),) = model.batching.numbers(dataset)
    assert targets.numpy().tolist() == EXPECTED


def test_thresholds_are_tuned_where_a_run_says_so():
    right = np.array([[1], [0], [1]])
    model = SimpleNamespace(threshold=0.5, thresholds={"a": 0.5})
    rows = SimpleNamespace(predict=lambda model: np.array([[0.4], [0.1], [0.3]], "float32"))
    prepared = PreparedLabels(rows, right, lambda right, found, bounds: {"bounds": bounds})
    for tune, threshold in ((False, 0.5), (True, [pytest.approx(0.2)])):
        part = prepared.validating(SimpleNamespace(tune_thresholds=tune))
        assert part.measured(model) == {"bounds": [0.5]} and model.threshold == threshold
    assert prepared.trained(None) is prepared
