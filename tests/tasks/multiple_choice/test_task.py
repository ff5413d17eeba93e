import numpy as np
import pytest

from kbert.tasks.multiple_choice.task import TASK
from kbert.training.config.finetuning_config import RunConfig

PROBABILITIES = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3]])


def test_metrics_of_choices_by_hand():
    # Right 0, 1, 1, 1; predicted 0, 1, 1, 0.
    found = TASK.measure_predictions(np.array([0, 1, 1, 1]), PROBABILITIES)
    assert list(found) == ["accuracy", "cross_entropy"] and found["accuracy"] == 0.75
    entropy = -np.log([0.9, 0.6, 0.8, 0.3]).mean()
    assert found["cross_entropy"] == pytest.approx(entropy)


@pytest.mark.parametrize(
    "values, told",
    [
        ({"train": "tfds:swag"}, "`train` must be a file with task='multiple-choice'"),
        ({"batch_tokens": 9}, "`batch_tokens` must be left out with task='multiple-choice'"),
        ({"strategy": "tpu"}, "`strategy` must be another one with task='multiple-choice': its"),
    ],
)
def test_what_it_cannot_do_is_told(values, told):
    given = {"task": "multiple-choice", "train": "t", "encoder": "e", "output": "o", **values}
    with pytest.raises(ValueError, match=told):
        RunConfig.from_dict(given)
