import dataclasses
import inspect
import re
from typing import Any

import pytest

from kbert.cli.commands.pretrain import pretrain
from kbert.cli.commands.train import train, train_translation
from kbert.cli.frame.run_options import (
    checked_config,
    given_values,
    shown_default,
    with_run_options,
)
from kbert.training.config.captioning_config import CaptioningConfig
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.multi_task_config import MultiTaskConfig
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.config.stages_config import StagesConfig
from kbert.training.config.translation_config import TranslationConfig

FIELDS = {field.name: field for field in dataclasses.fields(RunConfig)}


@pytest.mark.parametrize(
    "verb, configuration, own",
    [
        (train, RunConfig, {"task", "config"}),
        (train_translation, TranslationConfig, {"task", "config"}),
        (pretrain, PretrainingConfig, {"files", "config"}),
    ],
)
def test_every_field_is_an_option_without_a_default_of_its_own(verb, configuration, own):
    parameters = inspect.signature(verb).parameters
    names = {field.name for field in dataclasses.fields(configuration)} - {"task"}
    assert set(parameters) == {*names, *own}
    assert all(parameter.default is None for parameter in parameters.values())


def test_the_shown_defaults_are_those_of_the_configuration():
    parameters = inspect.signature(train).parameters
    shown = 0
    for name, field in FIELDS.items():
        if name == "task":
            continue
        option = parameters[name].annotation.__metadata__[0]
        assert option.help == field.metadata["help"]
        if field.default not in (None, False):
            default = field.default
            expected = name.replace("_", "-") if default is True else str(default)
            assert option.show_default == shown_default(field) == expected
            shown += 1
    assert shown == 21


def test_options_that_are_not_given_leave_the_defaults():
    values = given_values({name: None for name in FIELDS}, RunConfig)
    assert values == {}
    made = RunConfig.from_dict({"train": "a", "encoder": "e", "output": "o", **values})
    assert made.epochs == FIELDS["epochs"].default


def test_texts_become_values():
    given = {"text_a": "3", "label": "tag", "labels": "b,a", "class_weights": "{a: 1, b: 5e-1}"}
    given |= {"epochs": "4", "learning_rate": "3e-5"}
    assert given_values({**given, "grid": False}, RunConfig) == {
        "text_a": 3,
        "label": "tag",
        "labels": ["b", "a"],
        "class_weights": {"a": 1, "b": 0.5},
        "epochs": 4,
        "learning_rate": 3e-5,
        "grid": False,
    }
    with pytest.raises(ValueError, match="`class_weights` must be YAML"):
        given_values({"class_weights": "{a: 1"}, RunConfig)
    files = {"text": "a.txt, b/*.gz", "warmup_steps": 0}
    assert given_values(files, PretrainingConfig)["text"] == ["a.txt", "b/*.gz"]
    columns = {"source_column": "0", "target_column": "de"}
    assert given_values(columns, TranslationConfig) == {"source_column": 0, "target_column": "de"}


@pytest.mark.parametrize(
    "name, text, told",
    [
        ("epochs", "three", "`epochs` must be a whole number, at least 1. Received: .*'three'"),
        ("epochs", "2.5", "`epochs` must be a whole number, at least 1. Received: .*'2.5'"),
        ("learning_rate", "fast", "`learning_rate` must be a number above 0. .*='fast'"),
        ("learning_rate", "nan", "`learning_rate` must be a number above 0. .*=nan"),
    ],
)
def test_a_text_that_is_no_number_is_shown(name, text, told):
    needed = {"train": "a", "encoder": "e", "output": "o"}
    with pytest.raises(ValueError, match=told):
        checked_config(RunConfig, None, given_values({**needed, name: text}, RunConfig))


def test_the_help_says_which_options_are_numbers():
    parameters = inspect.signature(train).parameters
    names = ("epochs", "dropout", "encoder", "grid")
    options = {name: parameters[name].annotation.__metadata__[0] for name in names}
    assert options["epochs"].metavar == "<int>" and options["dropout"].metavar == "<float>"
    assert options["encoder"].metavar is None and options["grid"].metavar is None


def test_all_options_that_must_be_given_are_named_at_once(tmp_path):
    encoder = "`--encoder` (a name, a folder, scratch:SIZE or scratch:NAME)"
    with pytest.raises(ValueError) as error:
        checked_config(RunConfig, None, {})
    assert str(error.value) == (
        "`--train` (a file, tfds:NAME, hf:NAME, or a split of the GLUE task) or `--glue` (a task "
        f"of GLUE), {encoder} and `--output` (a folder) must be given, here or in the file of "
        "`--config`. Received: none of them"
    )
    file = tmp_path / "run.yaml"
    file.write_text("train: a.tsv\n")
    told = f"{encoder} must be given, here or in the file of `--config`. Received: `--train`, "
    with pytest.raises(ValueError, match=f"^{re.escape(told)}`--output`$"):
        checked_config(RunConfig, file, {"output": "o"})
    assert checked_config(RunConfig, file, {"encoder": "e", "output": "o"}).encoder == "e"
    for made, told in (
        (TranslationConfig, "^`--train` .* or `--train-source` .* and `--output`"),
        (CaptioningConfig, "^`--train` .*, `--images` .* and `--output`"),
        (MultiTaskConfig, "^`--tasks` .*, `--encoder` .* and `--output`"),
        (StagesConfig, "^`--stages` .* and `--output`"),
    ):
        with pytest.raises(ValueError, match=told):
            checked_config(made, None, {})


def test_the_verbs_own_parameters_stay():
    def verb(own: int = 1, **given: Any) -> None: ...

    parameters = list(inspect.signature(with_run_options(verb, RunConfig)).parameters)
    assert parameters[0] == "own" and "given" not in parameters and "epochs" in parameters
