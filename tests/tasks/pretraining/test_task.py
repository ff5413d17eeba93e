import pytest

from kbert.tasks.pretraining.task import TASK
from tests.small_pipelines import small_masked_language_model


def test_no_more_words_than_the_vocabulary_has():
    model = small_masked_language_model()
    TASK.give_more(model, 4)
    assert model.nbest == 4
    most = len(model.tokenizer.vocabulary)
    with pytest.raises(ValueError, match=f"`--nbest` must be at most {most}, the words"):
        TASK.give_more(model, most + 1)
