import pytest

from kbert.training.config.translation_config import TranslationConfig

LEAST = {"train": "a.tsv", "output": "o"}
FILES = {"train": None, "train_source": "a.en", "train_target": "a.de"}


@pytest.mark.parametrize(
    "values",
    [
        FILES,
        {"validation": "v.tsv", "early_stopping": 3, "monitor": "bleu"},
        {"train": "tfds:wmt16_translate/de-en", "source_language": "en", "data": "d"},
        {"warm_start": "runs/a", "bert": "all-MiniLM-L6-v2", "drop_net": 0.5, "features": "f"},
        {"subwords": "separate", "tied": "target"},
        {"source_subwords": "a.model", "target_subwords": "b.model"},
    ],
)
def test_what_goes_together(values):
    TranslationConfig.from_dict({**LEAST, **values})


@pytest.mark.parametrize(
    "values, message",
    [
        ({"output": None}, "`output` must be given: the run directory to make"),
        ({"train": None}, "`train` must be given, or train_source and train_target. Received"),
        ({"train_source": "a.en"}, "`train` must be left out with train_source and train_target"),
        ({"train": None, "train_source": "a"}, "`train_target` must be given with the other side"),
        ({"test_target": "a"}, "`test_source` must be given with the other side of the pairs"),
        ({**FILES, "train_source": "tfds:a/b"}, "`train_source` must be a text file; give train"),
        ({"early_stopping": 2}, "`early_stopping` must be left out where there is no validation"),
        ({"monitor": "bleu"}, "`monitor` must be left out where there is no validation"),
        ({"source_language": "en"}, "`source_language` must be left out without tfds:NAME"),
        ({"target_subwords": "a.model"}, "`source_subwords` must be given with target_subwords"),
        (
            {"source_subwords": "a.model", "vocabulary_size": 9},
            "`vocabulary_size` must be left out with source_subwords, a ready model. Received: voc",
        ),
        (
            {"tied": "all", "subwords": "separate"},
            "`tied` must be target or none with subwords='separate'",
        ),
        ({"warm_start": "r", "hidden_dim": 8}, "`hidden_dim` must be left out with warm_start"),
        ({"warm_start": "r", "subwords": "separate"}, "`subwords` must be left out with warm_st"),
        ({"drop_net": 0.5}, "`drop_net` must be left out without bert. Received: drop_net=0.5"),
        ({"features": "f"}, "`features` must be left out without bert"),
        (
            {"bert": "b", "train_bert": True, "features": "f"},
            "`features` must be left out with train_bert: its states change",
        ),
        ({"cooldown_epochs": 31}, "must be at most epochs=30. Received: cooldown_epochs=31"),
        ({"nbest": 9}, "`nbest` must be at most beam_size=5. Received: nbest=9"),
    ],
)
def test_what_contradicts_is_told(values, message):
    with pytest.raises(ValueError) as raised:
        TranslationConfig.from_dict({**LEAST, **values})
    assert message in str(raised.value)
