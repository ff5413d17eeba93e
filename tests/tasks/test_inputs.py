import pytest

from kbert.tasks.classification.task import TASK
from kbert.tasks.inputs import batch_sizes
from tests.tasks.conftest import texts


def test_lengths_steps_and_padding_by_hand(classifier, tiny, tmp_path):
    # [CLS] and [SEP] beside the words: 3, 4, 3, 6 (cut from 7).
    found = TASK.inputs(classifier, texts("good", "good film", "bad", "the a film was bad"))
    assert found.lengths.tolist() == [3, 4, 3, 6]
    assert found.truncated.tolist() == [False, False, False, True]
    config = tiny.config(tmp_path / "o", batch_size=2, epochs=3)
    assert found.steps(config) == [2, 2, 2]
    # Batches of like length: (6, 4) and (3, 3): 12 + 6 cells for 16 tokens.
    assert found.padding_share(config) == pytest.approx(1 - 16 / 18)
    budget = tiny.config(tmp_path / "o", batch_tokens=6, epochs=1)
    assert batch_sizes(budget) == {"batch_size": None, "batch_tokens": 6}
    assert found.steps(budget) == [3]  # 6; 4; 3 and 3


def test_batches_for_a_tpu_have_one_shape(classifier, tiny, tmp_path):
    found = TASK.inputs(classifier, texts("good", "bad film", "the plot was fine", "rain", "sun"))
    config = tiny.config(tmp_path / "o", batch_size=2, epochs=2, strategy="tpu")
    dataset = found.dataset(classifier, config, list(range(5)))
    inputs, labels = dataset.element_spec
    assert tuple(inputs["token_ids"].shape) == (2, classifier.max_sequence_length)
    assert tuple(labels.shape) == (2,)
    assert found.steps(config) == [2, 2] and int(dataset.cardinality()) == 2
