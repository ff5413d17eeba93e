import pytest

from kbert.training.config.pretraining_config import PretrainingConfig

LEAST = {"text": ["a.txt"], "vocabulary": "vocab.txt", "output": "o"}
RECORDS = {**LEAST, "text": None, "records": ["*.tfrecord"]}
GOING_ON = {**LEAST, "vocabulary": None, "encoder": "e"}


@pytest.mark.parametrize(
    "values",
    [
        LEAST,
        GOING_ON,
        {**GOING_ON, "objective": "lm", "max_sequence_length": 1024},
        {**LEAST, "validation": ["v.txt"], "validation_steps": 5},
        {**LEAST, "vocabulary": None, "vocabulary_size": 90, "lowercase": False},
        {**LEAST, "positions": 64, "max_sequence_length": 64, "steps": 7, "warmup_steps": 7},
    ],
)
def test_what_fits(values):
    assert PretrainingConfig.from_dict(values).text == ["a.txt"]


@pytest.mark.parametrize(
    "values, message",
    [
        ({**LEAST, "output": None}, "`output` must be given: the run directory to make."),
        ({**RECORDS, "text": ["a.txt"]}, "`text` must be left out with records. Received"),
        ({**RECORDS, "masked_share": 0.2}, "`masked_share` must be left out with records, whose"),
        ({**RECORDS, "objective": "lm"}, "`objective` must be mlm or mlm_nsp with records"),
        (
            {**RECORDS, "vocabulary": None, "vocabulary_size": 90},
            "`vocabulary_size` must be left out with records: vocabulary is what they were made",
        ),
        ({**LEAST, "text": None}, "`text` must be given: the files to learn from. Received"),
        ({**LEAST, "vocabulary": None}, "One of `encoder`, to go on from, and `vocabulary` or `v"),
        (
            {**LEAST, "encoder": "e"},
            "Received: encoder='e', vocabulary='vocab.txt', vocabulary_size=None",
        ),
        ({**LEAST, "vocabulary_size": 90}, "vocabulary='vocab.txt', vocabulary_size=90"),
        ({**GOING_ON, "size": "mini"}, "`size` must be left out with encoder, which has its own."),
        ({**GOING_ON, "lowercase": False}, "`lowercase` must be left out with encoder"),
        (
            {**LEAST, "max_sequence_length": 600},
            "`max_sequence_length` must be at most 512, the positions of the new model. Received: "
            "max_sequence_length=600",
        ),
        (
            {**LEAST, "objective": "lm_nsp", "whole_words": True},
            "`whole_words` must be left out with objective lm_nsp, which masks nothing. Received",
        ),
        ({**LEAST, "validation_steps": 5}, "`validation_steps` must be left out without validati"),
        (
            {**LEAST, "save_every": 50, "steps_per_execution": 20},
            "`save_every` must be a multiple of steps_per_execution=20. Received: save_every=50",
        ),
        ({**LEAST, "steps": 5, "warmup_steps": 6}, "`warmup_steps` must be at most 5, the steps."),
    ],
)
def test_what_contradicts_itself(values, message):
    with pytest.raises(ValueError) as raised:
        PretrainingConfig.from_dict(values)
    assert message in str(raised.value)
