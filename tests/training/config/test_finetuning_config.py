import dataclasses

import pytest

from kbert.tasks.registry import FINETUNED
from kbert.training.config.finetuning_config import RunConfig, options_of_others

LEAST = {"train": "a.tsv", "encoder": "e", "output": "o"}


def config(**values):
    return RunConfig.from_dict({**LEAST, **values})


def test_the_defaults_are_those_that_the_documentation_names():
    # Devlin et al. 2019, appendix A.3 and A.2: 3 epochs, batch 32, 5e-5, warm-up, decay 0.01.
    made = config()
    assert (made.epochs, made.batch_size, made.peak_rate) == (3, 32, 5e-5)
    assert (made.warmup_fraction, made.weight_decay, made.clip) == (0.1, 0.01, 1.0)
    assert (made.max_sequence_length, made.dropout, made.precision) == (None, 0.1, "float32")
    assert made.batch_tokens is None and made.early_stopping is None and made.seeds == 1


def test_it_goes_to_a_dict_and_back():
    made = config(labels=["b", "a"], class_weights={"a": 1.0, "b": 2.0}, validation="v.tsv")
    assert RunConfig.from_dict(made.to_dict()) == made
    assert made.with_values(epochs=7).epochs == 7


def test_an_unknown_key_names_the_nearest_known_one(tmp_path):
    with pytest.raises(ValueError, match=r"Received: 'learning-rat'. Did you mean `learning_rate`"):
        config(**{"learning-rat": 1})
    file = tmp_path / "run.yaml"
    file.write_text("epoch: 3\n")
    with pytest.raises(ValueError, match=r"run.yaml: the key .*'epoch'. Did you mean `epochs`"):
        RunConfig.from_yaml(file)


def test_given_values_go_before_those_of_the_file(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("train: a.tsv\nencoder: e\noutput: o\nepochs: 9\nlearning_rate: 3e-5\n")
    made = RunConfig.from_yaml(file, epochs=2)
    assert (made.epochs, made.learning_rate) == (2, 3e-5)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"epochs": "three"}, "`epochs` must be a whole number, at least 1. Received: epochs='th"),
        ({"epochs": 0}, "`epochs` must be a whole number, at least 1. Received: epochs=0"),
        ({"learning_rate": 0}, "`learning_rate` must be a number above 0. Received"),
        ({"dropout": 1.0}, "`dropout` must be a number in [0, 1). Received: dropout=1.0"),
        ({"task": "tagging"}, f"`task` must be one of {', '.join(FINETUNED)}. Received: task='tag"),
        ({"precision": "float16"}, "`precision` must be one of float32, mixed_bfloat16"),
    ],
)
def test_what_cannot_be_is_refused_by_name(values, message):
    with pytest.raises(ValueError) as raised:
        config(**values)
    assert message in str(raised.value)


def test_the_size_of_an_encoder_without_weights():
    assert config(encoder="scratch:tiny", vocabulary="v.txt").scratch_size == "tiny"
    assert config().scratch_size is None


def test_every_field_says_what_it_is_for():
    for field in dataclasses.fields(RunConfig):
        assert field.metadata["help"].endswith("."), field.name
        assert field.metadata["panel"] in ("Data", "Model", "Training", "Run")


def test_the_options_that_a_task_has_no_use_for():
    assert {"tag_scheme", "pooling", "stride"} <= options_of_others("classification")
    assert not {"labels", "features", "epochs"} & options_of_others("classification")
    assert not {"tag_scheme", "stride", "label"} & options_of_others("ner")
