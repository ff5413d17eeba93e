from kbert.tasks.base.finetuned_task import wrong
from kbert.tasks.registry import finetuned_tasks
from kbert.training.config.finetuning_config import RunConfig


def test_the_error_names_the_key_what_was_expected_and_what_came():
    error = wrong("patience", "at least 1", 0)
    assert isinstance(error, ValueError)
    assert str(error) == "`patience` must be at least 1. Received: patience=0"
    assert str(wrong("metric", "a metric's name", "")).endswith("Received: metric=''")


def test_settings_and_options_are_keys_of_the_configuration():
    keys = {field.name for field in RunConfig.options()}
    for task in finetuned_tasks():
        assert {*task.settings, *task.options} <= keys, task.name
