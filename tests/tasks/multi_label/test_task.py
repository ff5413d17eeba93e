import numpy as np
import pytest

from kbert.tasks.multi_label.task import TASK, label_answer
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.recipes.finetuning import read_run_data

ROWS = "text\tlabels\nx\ta|b\ny\t\nz\tb\nw\ta,c\nv\tb|c\n"
RIGHT = np.array([[1, 0], [0, 1], [1, 1]])
SCORES = np.array([[0.9, 0.3], [0.6, 0.4], [0.7, 0.8]])


def config(folder, content=ROWS, name="train.tsv", **others):
    (folder / name).write_text(content, encoding="utf-8")
    values = {"task": "multi-label", "encoder": "e", "output": "o", "train": str(folder / name)}
    return RunConfig.from_dict({**values, **others})


def weights_of(made):
    data = read_run_data(made)
    return TASK.class_weights(made, data.train, data.labels)


def test_labels_are_sorted_and_counted(tmp_path):
    data = read_run_data(config(tmp_path))
    assert data.labels == ["a", "a,c", "b", "c"] and data.glue is None
    counts = TASK.label_counts(data.train, data.labels)
    assert counts == {"a": 1, "a,c": 1, "b": 3, "c": 1}
    data = read_run_data(config(tmp_path, ROWS.replace("|", ","), label_separator=","))
    assert data.labels == ["a", "b", "c"]
    assert TASK.label_counts(data.train, data.labels) == {"a": 2, "b": 3, "c": 2}


def test_columns_of_0_and_1(tmp_path):
    content = "text,rude,kind\nx,1,0\ny,0,0\nz,0,0\n"
    made = config(tmp_path, content, "t.csv", label="rude,kind", labels=["rude", "kind"])
    data = read_run_data(made)
    assert data.labels == ["rude", "kind"]
    assert TASK.targets(data.train, data.labels).tolist() == [[1, 0], [0, 0], [0, 0]]


def test_balanced_weights_by_hand(tmp_path):
    # (n - n_c) / n_c: positive targets weigh as much as negative ones.
    made = config(tmp_path, "text\tlabels\nx\ta\ny\tb|a\nz\tb\nw\ta\n", class_weights="balanced")
    assert weights_of(made) == {"a": pytest.approx(1 / 3), "b": 1.0}
    loss = TASK.weighted_loss(weights_of(made))
    assert loss.positive_weights == pytest.approx([1 / 3, 1.0])
    made = config(tmp_path, "text\tlabels\nx\ta\ny\tb|a\nz\tb\nw\ta\n", labels=["a", "b", "c"])
    with pytest.raises(ValueError, match="has no training example. Received: none for c"):
        weights_of(made.with_values(class_weights="balanced"))
    made = config(tmp_path, "text\tlabels\nx\ta\ny\tb|a\n", class_weights="balanced")
    with pytest.raises(ValueError, match="all training examples have a label. Received: a"):
        weights_of(made)
    made = config(tmp_path, class_weights={"a": 2.0})
    with pytest.raises(ValueError, match="one weight for each label: a, a,c, b, c. Received: a"):
        weights_of(made)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"tune_thresholds": True}, "`tune_thresholds` must be false where there is no validation"),
        (
            {"tune_thresholds": True, "validation": "v.tsv", "threshold": 0.4},
            "`threshold` must be left out with tune_thresholds=True. Received: threshold=0.4",
        ),
        ({"threshold": 1.0}, r"`threshold` must be a number in \(0, 1\), or {label: number}"),
        ({"threshold": {"a": 0}}, r"`threshold` must be a number in \(0, 1\), or {label: number}"),
        ({"glue": "sst2", "data": "d"}, "`task` must be classification with glue='sst2'"),
        ({"task": "classification", "threshold": 0.4}, "`threshold` must be left out with task="),
        ({"task": "ner", "label_separator": ","}, "`label_separator` must be left out with task="),
        ({"label_separator": ""}, "`label_separator` must be text that stands between two labels"),
        ({"monitor": "accuracy", "validation": "v"}, None),
    ],
)
def test_contradictions(tmp_path, values, message):
    if message is None:
        assert TASK.monitors(["a"]) == ["micro_f1", "macro_f1", "exact_match", "cross_entropy"]
        return
    with pytest.raises(ValueError, match=message):
        config(tmp_path, **values)


def test_labels_and_thresholds_that_nobody_knows(tmp_path):
    made = config(tmp_path, threshold={"d": 0.4})
    with pytest.raises(ValueError, match="`threshold` must have labels as keys: .*Received: d"):
        read_run_data(made)
    (tmp_path / "v.tsv").write_text("text\tlabels\nx\ta\ny\tb|d\n", encoding="utf-8")
    with pytest.raises(ValueError, match="v.tsv, line 3: the label must be one of .*Received: 'd'"):
        read_run_data(config(tmp_path, validation=str(tmp_path / "v.tsv")))
    (tmp_path / "p.tsv").write_text("text_a\ttext_b\tlabels\nx\ty\ta\n", encoding="utf-8")
    message = "the validation examples must be single texts, as those of training."
    with pytest.raises(ValueError, match=message):
        read_run_data(config(tmp_path, validation=str(tmp_path / "p.tsv")))
    with pytest.raises(ValueError, match="have a column `mood`. Received: columns `text`"):
        TASK.check_columns(str(tmp_path / "v.tsv"), {"label": "mood", "label_separator": "|"})


def test_metrics_at_thresholds():
    # At 1/2 the label a is predicted for all, b for the last; right: 1, 3; 2, 3.
    found = TASK.measure_predictions(RIGHT, SCORES, ["a", "b"])
    assert found["micro_f1"] == pytest.approx(2 * 3 / (4 + 4))
    found = TASK.measure_predictions(RIGHT, SCORES, ["a", "b"], thresholds=[0.65, 0.35])
    assert found["exact_match"] == 1.0


def test_what_a_tpu_is_told():
    spec = TASK.target_spec(8, ["a", "b", "c"])
    assert spec.shape == (8, 3) and spec.dtype == "float32"


def test_an_answer_names_the_most_likely_first():
    found = label_answer(["a", "b", "c"], [0.6, 0.2, 0.9], [True, False, True])
    assert found == {"labels": ["c", "a"], "probabilities": {"a": 0.6, "b": 0.2, "c": 0.9}}
