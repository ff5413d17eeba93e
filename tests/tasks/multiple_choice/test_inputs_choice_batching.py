"""Batches of contexts with choices."""

import numpy as np
import pytest

from tests.small_pipelines import random_texts, small_multiple_choice

CONTEXTS = random_texts(20, seed=1, longest=12)
CHOICES = [random_texts(3, seed=i + 10, longest=12) for i in range(20)]


@pytest.fixture(scope="module")
def model():
    return small_multiple_choice()


def test_a_dataset_of_something_else(model):
    with pytest.raises(ValueError, match="`x` must be a tuple of n contexts and of n lists"):
        model.batching.choices(["a", "b"])


def test_an_epoch_has_the_same_batches_whoever_begins_it(model):
    """Each row once, in an order of seed and epoch; a rest goes on in that order."""

    def indices(**place):
        indices = np.arange(20) % 3
        dataset = model.batching.choices((CONTEXTS, CHOICES), indices, 6, True, 4, **place)
        return [batch[1].numpy().tolist() for batch in dataset], dataset

    first, dataset = indices()
    second = [batch[1].numpy().tolist() for batch in dataset]
    assert first != second and sorted(sum(second, [])) == sorted(np.arange(20) % 3)
    assert indices(first_epoch=1)[0] == second
    assert indices(first_epoch=1, first_batch=2)[0] == second[2:]
