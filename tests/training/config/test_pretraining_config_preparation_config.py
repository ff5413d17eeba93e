import pytest

from kbert.training.config.pretraining_config import PreparationConfig

LEAST = {"text": ["a.txt"], "vocabulary": "vocab.txt", "output": "o"}


def test_what_fits():
    assert PreparationConfig.from_dict(LEAST).copies == 1


@pytest.mark.parametrize(
    "values, message",
    [
        ({"text": None}, "`text` must be given: the files to make examples of. Received: text="),
        ({"vocabulary": None}, "`vocabulary` must be given: a file with a token a line."),
        ({"output": None}, "`output` must be given: the folder to make."),
        ({"objective": "lm"}, "`objective` must be one of mlm_nsp, mlm. Received: obj"),
        ({"shards": 0}, "`shards` must be a whole number, at least 1"),
    ],
)
def test_what_does_not(values, message):
    with pytest.raises(ValueError, match=message):
        PreparationConfig.from_dict({**LEAST, **values})
