import numpy as np
import pytest

from kbert.data.classification.text_pairs import TextExamples
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.finetuning.examples import class_weights, label_counts, read_run_data, targets


def write(folder, name, content):
    (folder / name).write_text(content, encoding="utf-8")
    return str(folder / name)


def config(folder, train="a\tx\nb\ty\na\tz\na\tw\nb\tv\n", **others):
    values = {"encoder": "e", "output": "o", **others}
    if "glue" not in values:
        values.setdefault("train", write(folder, "train.tsv", f"label\ttext\n{train}"))
    return RunConfig.from_dict(values)


def test_labels_are_sorted_and_counted(tmp_path):
    data = read_run_data(config(tmp_path))
    assert data.labels == ["a", "b"] and not data.pair and data.glue is None
    assert label_counts(data.train, data.labels) == {"a": 3, "b": 2}
    assert targets(data.train, ["b", "a"]).tolist() == [1, 0, 1, 1, 0]


def test_given_labels_keep_their_order(tmp_path):
    data = read_run_data(config(tmp_path, labels=["b", "c", "a"]))
    assert data.labels == ["b", "c", "a"]
    assert targets(data.train, data.labels).tolist() == [2, 0, 2, 2, 0]


def test_balanced_weights_by_hand(tmp_path):
    # n / (C n_c): 5 / (2 * 3) and 5 / (2 * 2); the weighted count is 5 again.
    made = config(tmp_path, class_weights="balanced")
    weights = class_weights(made, read_run_data(made))
    assert weights == pytest.approx({"a": 5 / 6, "b": 5 / 4})
    assert 3 * weights["a"] + 2 * weights["b"] == pytest.approx(5)


def test_weights_for_each_label(tmp_path):
    made = config(tmp_path, class_weights={"b": 2, "a": 1})
    assert class_weights(made, read_run_data(made)) == {"a": 1.0, "b": 2.0}
    assert class_weights(config(tmp_path), read_run_data(config(tmp_path))) is None
    made = config(tmp_path, class_weights={"b": 2, "c": 1})
    with pytest.raises(ValueError, match="one weight for each label: a, b. Received: b, c"):
        class_weights(made, read_run_data(made))
    made = config(tmp_path, class_weights="balanced", labels=["a", "b", "c"])
    with pytest.raises(ValueError, match="has no training example. Received: none for c"):
        class_weights(made, read_run_data(made))


def test_soft_labels(tmp_path):
    lines = '{"text": "x", "label": {"a": 0.25, "b": 0.75}}\n{"text": "y", "label": {"a": 1.0}}\n'
    made = RunConfig.from_dict(
        {"train": write(tmp_path, "t.jsonl", lines), "encoder": "e", "output": "o"}
    )
    data = read_run_data(made)
    np.testing.assert_allclose(targets(data.train, data.labels), [[0.25, 0.75], [1, 0]])
    assert label_counts(data.train, ["a", "b"]) == {"a": 1.25, "b": 0.75}


def test_glue_in_its_layout(tmp_path):
    folder = tmp_path / "SST-2"
    folder.mkdir()
    for part in ("train", "dev"):
        write(folder, f"{part}.tsv", "sentence\tlabel\ngood\t1\nbad\t0\nfine\t1\ndull\t0\n")
    data = read_run_data(config(tmp_path, glue="SST-2", data=str(tmp_path)))
    assert data.labels == ["negative", "positive"] and data.glue == "sst2"
    assert list(data.parts) == ["train", "validation"]
    assert data.validation.source.endswith("dev.tsv")


def test_tfds_by_name_and_split(monkeypatch):
    asked = []

    def read_tfds(name, split, data_dir, **columns):
        asked.append((name, split, data_dir, columns))
        return TextExamples(["x", "y"], None, ["negative", "positive"], None, "tfds", [1, 2])

    monkeypatch.setattr("kbert.training.finetuning.examples.read_tfds", read_tfds)
    names = {"train": "tfds:glue/sst2@train[:9]", "validation": "tfds:glue/sst2"}
    others = {"data": "d", "text_a": "sentence", "encoder": "e", "output": "o"}
    data = read_run_data(RunConfig.from_dict({**names, **others}))
    assert asked == [
        ("glue/sst2", "train[:9]", "d", {"text_a": "sentence"}),
        ("glue/sst2", "validation", "d", {"text_a": "sentence"}),
    ]
    # The official metrics and the order of the labels come with the name.
    assert data.glue == "sst2" and data.labels == ["negative", "positive"]


@pytest.mark.parametrize(
    "validation, message",
    [
        ("label\ttext\nc\tx\n", "valid.tsv, line 2: the label must be one of `a`, `b`. Rec"),
        ("label\ttext\n", "valid.tsv: the file must hold examples. Received: only a header"),
        ("", "valid.tsv: the file must hold examples. Received: an empty file"),
        ("label\twords\na\tx\n", "valid.tsv, line 1: `text_a` must be given where no column"),
        ("tag\ttext\na\tx\n", "valid.tsv: the examples must have labels. Received: columns"),
        (
            "label\ttext_a\ttext_b\na\tx\ty\n",
            "valid.tsv: the validation examples must be single texts, as those of training",
        ),
    ],
)
def test_every_part_is_checked_before_training(tmp_path, validation, message):
    made = config(tmp_path, validation=write(tmp_path, "valid.tsv", validation))
    with pytest.raises(ValueError) as raised:
        read_run_data(made)
    assert message in str(raised.value)


def test_training_examples_that_teach_nothing_are_refused(tmp_path):
    with pytest.raises(ValueError, match="must have two labels or more. Received: 'a'"):
        read_run_data(config(tmp_path, train="a\tx\na\ty\n"))
    with pytest.raises(ValueError, match="column must be one of .*`text`.*Received: column='txt'"):
        read_run_data(config(tmp_path, text_a="txt"))
    with pytest.raises(FileNotFoundError, match="none.tsv"):
        read_run_data(config(tmp_path, validation=str(tmp_path / "none.tsv")))
    with pytest.raises(ValueError, match="must be a finite number for regression. Received: 'a'"):
        read_run_data(config(tmp_path, task="regression", label="label"))


def test_soft_labels_without_names_need_them(tmp_path):
    file = write(tmp_path, "t.jsonl", '{"text": "x", "label": [0.5, 0.5]}\n')
    with pytest.raises(ValueError, match="`labels` must be given where the labels are lists"):
        read_run_data(RunConfig.from_dict({"train": file, "encoder": "e", "output": "o"}))


def test_choices_must_be_as_many(tmp_path):
    row = '{"context": "x", "choices": ["a", "b"%s], "label": 0}\n'
    made = RunConfig.from_dict(
        {
            "task": "multiple-choice",
            "train": write(tmp_path, "t.jsonl", row % ""),
            "validation": write(tmp_path, "v.jsonl", row % ', "c"'),
            "encoder": "e",
            "output": "o",
        }
    )
    with pytest.raises(ValueError, match="v.jsonl: each example must have 2 choices.* Received: 3"):
        read_run_data(made)
