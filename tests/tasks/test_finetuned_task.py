from kbert.tasks.registry import finetuned_tasks
from kbert.training.config.finetuning_config import RunConfig


def test_settings_and_options_are_keys_of_the_configuration():
    keys = {field.name for field in RunConfig.options()}
    for task in finetuned_tasks():
        assert {*task.settings, *task.options} <= keys, task.name
