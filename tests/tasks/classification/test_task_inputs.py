import numpy as np
import pytest

from kbert.data.classification.multiple_choice import read_choice_examples
from kbert.tasks.classification.task import TASK
from tests.tasks.conftest import texts


def test_training_batches_hold_every_example_once(classifier, tiny, tmp_path):
    found = TASK.inputs(classifier, texts("good", "bad film", "the plot was fine", "rain", "sun"))
    config = tiny.config(tmp_path / "o", batch_size=2)
    dataset = found.dataset(classifier, config, np.arange(5))
    rows = [labels.numpy().tolist() for _, labels in dataset]
    assert sorted(sum(rows, [])) == [0, 1, 2, 3, 4] and len(rows) == 3


def test_examples_must_be_what_the_model_reads(classifier, tiny):
    with pytest.raises(ValueError, match="here: the examples must be single.*Received: pairs"):
        TASK.inputs(classifier, texts("a", text_b=["b"]))
    with pytest.raises(ValueError, match="must be texts for a Classifier. Received: multiple"):
        TASK.inputs(classifier, read_choice_examples(tiny.choices))
