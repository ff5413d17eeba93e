import dataclasses
from typing import Any

import pytest

from kbert.data.batches import mixtures
from kbert.tasks.registry import finetuned_tasks
from kbert.training.config.any_config import config_from_dict
from kbert.training.config.multi_task_config import SAMPLINGS, MultiTaskConfig

A = {"train": "a.tsv", "validation": "b.tsv"}
B = {"task": "ner", "train": "c.conll"}
LEAST = {"tasks": {"a": A, "b": B}, "encoder": "e", "output": "o"}


def config(**values: Any) -> MultiTaskConfig:
    return MultiTaskConfig.from_dict({**LEAST, **values})


def test_it_goes_to_a_dict_and_back():
    made = config(sampling={"a": 1, "b": 2.5}, monitor="a")
    assert MultiTaskConfig.from_dict(made.to_dict()) == made
    assert config_from_dict(made.to_dict()) == made


def test_the_words_are_those_of_the_rooms_below():
    """They are written a second time, since those rooms load TensorFlow, and --help must not."""
    assert SAMPLINGS == mixtures.SAMPLINGS


def test_every_field_says_what_it_is_for():
    panels = ("Tasks", "Data", "Model", "Training", "Run")
    for field in dataclasses.fields(MultiTaskConfig):
        assert field.metadata["help"].endswith("."), field.name
        assert field.metadata["panel"] in panels, field.name


def test_each_task_has_the_configuration_of_a_run_on_it_alone():
    tasks = {"a": {**A, "weight": 2, "max_sequence_length": 64}, "b": B}
    made = config(tasks=tasks, epochs=7, seed=5, precision="mixed_bfloat16")
    first, second = made.task_configs.values()
    assert (first.task, first.train, first.max_sequence_length) == ("classification", "a.tsv", 64)
    assert (second.task, second.train, second.max_sequence_length) == ("ner", "c.conll", None)
    for one in (first, second):
        assert (one.epochs, one.seed, one.precision) == (7, 5, "mixed_bfloat16")
        assert one.encoder == "e"
    assert made.loss_weights == {"a": 2, "b": 1.0}


def test_files_of_tasks_on_the_command_line(tmp_path):
    for name, text in (("a", "train: a.tsv"), ("b", "task: ner\ntrain: c.conll")):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    fields = {field.name: field for field in dataclasses.fields(MultiTaskConfig)}
    kind = fields["tasks"].metadata["kind"]
    found = kind.from_text(f"a={tmp_path}/a.yaml, b={tmp_path}/b.yaml")
    assert found == {"a": {"train": "a.tsv"}, "b": B}
    for wrong in ("a", f"a={tmp_path}/c.yaml", f"a={tmp_path}/a.yaml,a={tmp_path}/b.yaml"):
        with pytest.raises(ValueError, match="`tasks` must be NAME=FILE,NAME=FILE, of different"):
            kind.from_text(wrong)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"tasks": None}, "`tasks` must be given: two tasks or more, by names. Received: tasks=N"),
        ({"tasks": {"a": A}}, "`tasks` must be given: two tasks or more"),
        ({"tasks": {"a": A, "2b": B}}, "letters, digits and _, other than mean. .*'2b'"),
        ({"tasks": {"a": A, "mean": B}}, "other than mean. Received: tasks='mean'"),
        ({"tasks": {"a": A, "b": "c.conll"}}, "`tasks` must be {name: options}"),
        ({"tasks": {"a": {**A, "epochs": 3}, "b": B}}, "^tasks.a: .* beside `tasks`.*'epochs'"),
        ({"tasks": {"a": {**A, "adapter": "lora"}, "b": B}}, "^tasks.a: .* alone. .*'adapter'"),
        ({"tasks": {"a": {**A, "lable": "x"}, "b": B}}, "^tasks.a: the key must be .*label"),
        ({"tasks": {"a": {**A, "dropout": 2}, "b": B}}, "^tasks.a: `dropout` must be a number"),
        ({"tasks": {"a": {}, "b": B}}, "^tasks.a: `train` must be given"),
        ({"tasks": {"a": {**A, "weight": "x"}, "b": B}}, "`tasks.a.weight` must be a number above"),
        ({"tasks": {"a": {**A, "weight": 0}, "b": B}}, "`tasks.a.weight` must be a number above 0"),
        (
            {"tasks": {"a": {**A, "task": "multiple-choice"}, "b": B}},
            "`tasks.a.task` must be one whose model reads one sequence a row",
        ),
        ({"tasks": {"a": {**A, "task": "embedding"}, "b": B}}, "`tasks.a.task` must be one whose"),
        ({"sampling": "even"}, "`sampling` must be one of proportional, square-root"),
        ({"sampling": {"a": 1}}, "`sampling` must be a number for each of a, b"),
        ({"sampling": {"a": 1, "b": "many"}}, "or a number above 0 for each task. Received"),
        ({"sampling": {"a": 1, "b": -1}}, "or a number above 0 for each task. Received"),
        ({"temperature": 3.0}, "`temperature` must be left out with sampling=proportional"),
        ({"monitor": "b"}, "`monitor` must be one of mean, a. Received: monitor='b'"),
        (
            {"tasks": {"a": {"train": "a.tsv"}, "b": B}, "early_stopping": 1},
            "`early_stopping` must be left out where no task has a validation",
        ),
        ({"encoder": None}, "`encoder` must be given"),
        ({"strategy": "tpu", "batch_tokens": 9, "save_every": 1}, "`batch_tokens` must be left"),
    ],
)
def test_what_does_not_fit(values, message):
    with pytest.raises(ValueError, match=message):
        config(**values)


def test_tasks_that_cannot_share_a_batch_are_few():
    alone = {task.name for task in finetuned_tasks() if not task.has_one_sequence}
    assert alone == {"multiple-choice", "embedding"}
