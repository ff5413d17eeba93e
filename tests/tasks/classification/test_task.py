import numpy as np
import pytest

from kbert.tasks.classification.task import TASK
from kbert.training.callbacks.epoch_record import numbers
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.recipes.finetuning import read_run_data

PROBABILITIES = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3]])


def write(folder, name, content):
    (folder / name).write_text(content, encoding="utf-8")
    return str(folder / name)


def config(folder, train="a\tx\nb\ty\na\tz\na\tw\nb\tv\n", **others):
    values = {"encoder": "e", "output": "o", **others}
    if "glue" not in values:
        values.setdefault("train", write(folder, "train.tsv", f"label\ttext\n{train}"))
    return RunConfig.from_dict(values)


def weights_of(config):
    data = read_run_data(config)
    return TASK.class_weights(config, data.train, data.labels)


def test_labels_are_sorted_and_counted(tmp_path):
    data = read_run_data(config(tmp_path))
    assert data.labels == ["a", "b"] and data.glue is None
    assert TASK.model_settings(None, data.train) == {"pair": False}
    assert TASK.label_counts(data.train, data.labels) == {"a": 3, "b": 2}
    assert TASK.targets(data.train, ["b", "a"]).tolist() == [1, 0, 1, 1, 0]


def test_given_labels_keep_their_order(tmp_path):
    data = read_run_data(config(tmp_path, labels=["b", "c", "a"]))
    assert data.labels == ["b", "c", "a"]
    assert TASK.targets(data.train, data.labels).tolist() == [2, 0, 2, 2, 0]


def test_balanced_weights_by_hand(tmp_path):
    # n / (C n_c): 5 / (2 * 3) and 5 / (2 * 2); the weighted count is 5 again.
    made = config(tmp_path, class_weights="balanced")
    weights = weights_of(made)
    assert weights == pytest.approx({"a": 5 / 6, "b": 5 / 4})
    assert 3 * weights["a"] + 2 * weights["b"] == pytest.approx(5)


def test_weights_for_each_label(tmp_path):
    made = config(tmp_path, class_weights={"b": 2, "a": 1})
    assert weights_of(made) == {"a": 1.0, "b": 2.0}
    assert weights_of(config(tmp_path)) is None
    made = config(tmp_path, class_weights={"b": 2, "c": 1})
    with pytest.raises(ValueError, match="one weight for each label: a, b. Received: b, c"):
        weights_of(made)
    made = config(tmp_path, class_weights="balanced", labels=["a", "b", "c"])
    with pytest.raises(ValueError, match="has no training example. Received: none for c"):
        weights_of(made)


def test_soft_labels(tmp_path):
    lines = '{"text": "x", "label": {"a": 0.25, "b": 0.75}}\n{"text": "y", "label": {"a": 1.0}}\n'
    made = RunConfig.from_dict(
        {"train": write(tmp_path, "t.jsonl", lines), "encoder": "e", "output": "o"}
    )
    data = read_run_data(made)
    np.testing.assert_allclose(TASK.targets(data.train, data.labels), [[0.25, 0.75], [1, 0]])
    assert TASK.label_counts(data.train, ["a", "b"]) == {"a": 1.25, "b": 0.75}


def test_metrics_of_classes_by_hand():
    # Right 0, 1, 1, 1; predicted 0, 1, 1, 0: accuracy 3/4; F1 of class 1: 2*2/(2*2+1) = 0.8.
    found = TASK.measure_predictions(np.array([0, 1, 1, 1]), PROBABILITIES, ["a", "b"])
    assert found["accuracy"] == 0.75 and found["f1"] == pytest.approx(0.8)
    assert found["confusion"] == [[1, 0], [1, 2]]
    entropy = -np.log([0.9, 0.6, 0.8, 0.3]).mean()
    assert found["cross_entropy"] == pytest.approx(entropy)
    assert set(numbers(found)) == {"accuracy", "macro_f1", "matthews", "f1", "cross_entropy"}


def test_the_likeliest_class_of_a_soft_label_counts():
    soft = np.array([[0.6, 0.4], [0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])
    assert TASK.measure_predictions(soft, PROBABILITIES, ["a", "b"])["accuracy"] == 0.75


def test_official_metrics_come_first():
    names = ["not_equivalent", "equivalent"]
    found = TASK.measure_predictions(np.array([0, 1, 1, 1]), PROBABILITIES, names, "mrpc")
    assert list(found)[:2] == ["f1", "accuracy"]
    assert found["f1"] == pytest.approx(0.8)


def test_metrics_that_epochs_may_be_compared_by():
    assert TASK.monitors(["a", "b", "c"]) == ["accuracy", "cross_entropy", "macro_f1", "matthews"]
    assert TASK.monitors(["a", "b"])[-1] == "f1"


def test_the_entropy_of_soft_labels_is_that_of_training():
    soft = np.array([[0.6, 0.4], [1.0, 0.0]])
    sure = np.array([[1.0, 0.0], [1.0, 0.0]])
    found = TASK.measure_predictions(soft, soft, ["a", "b"])["cross_entropy"]
    assert found == pytest.approx(-(0.6 * np.log(0.6) + 0.4 * np.log(0.4)) / 2)
    assert found < TASK.measure_predictions(soft, sure, ["a", "b"])["cross_entropy"]
