import pytest

from kbert.training.config.any_config import config_class, config_from_dict, config_from_yaml
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.config.translation_config import TranslationConfig

LEAST = {"train": "a.tsv", "output": "o"}


def test_the_task_says_the_class(tmp_path):
    assert config_class("translation") is TranslationConfig
    assert config_class("pretraining") is PretrainingConfig
    assert config_class("ner") is config_class(None) is RunConfig
    made = config_from_dict({**LEAST, "task": "translation", "size": "base"})
    assert isinstance(made, TranslationConfig) and made.size == "base"
    assert config_from_dict({**LEAST, "encoder": "e"}) == RunConfig(**LEAST, encoder="e")
    file = tmp_path / "run.yaml"
    file.write_text("train: a.tsv\noutput: o\ntask: translation\nepochs: 4\n")
    assert config_from_yaml(file, epochs=5).epochs == 5


def test_keys_of_another_task_are_refused():
    with pytest.raises(ValueError, match="the key must be an option. Received: 'beam_size'"):
        config_from_dict({**LEAST, "encoder": "e", "beam_size": 3})
    with pytest.raises(ValueError, match="the key must be an option. Received: 'encoder'"):
        config_from_dict({**LEAST, "task": "translation", "encoder": "e"})
    with pytest.raises(ValueError, match="`task` must be one of classification"):
        config_from_dict({**LEAST, "encoder": "e", "task": "translating"})
