import pytest

from kbert.data.classification.text_pairs import TextExamples
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.recipes.finetuning import read_run_data


def write(folder, name, content):
    (folder / name).write_text(content, encoding="utf-8")
    return str(folder / name)


def config(folder, train="a\tx\nb\ty\na\tz\na\tw\nb\tv\n", **others):
    values = {"encoder": "e", "output": "o", **others}
    if "glue" not in values:
        values.setdefault("train", write(folder, "train.tsv", f"label\ttext\n{train}"))
    return RunConfig.from_dict(values)


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

    monkeypatch.setattr("kbert.data.tfds_examples.read_tfds", read_tfds)
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
        ("tag\ttext\na\tx\n", "valid.tsv, line 1: `label` must be given where no column is"),
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
    with pytest.raises(ValueError, match="must have a column `txt`.*Received: .*`text`"):
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
