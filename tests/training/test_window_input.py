import numpy as np
import pytest

from kbert.pipelines.question_answering import QuestionAnswerer
from kbert.training.reading_data import read_reading
from kbert.training.reading_evaluation import prepare_reading


@pytest.fixture(scope="module")
def prepared(tiny, tmp_path_factory):
    output = tmp_path_factory.mktemp("o") / "o"
    config = tiny.reading(output, "question-answering", tiny.questions)
    model = QuestionAnswerer.from_pretrained(
        tiny.encoder, max_sequence_length=12, stride=2, max_question_length=3
    )
    return prepare_reading(model, read_reading(config, "train")).input, model, config


def test_steps_and_padding_are_those_of_the_batches(prepared):
    given, model, config = prepared
    # By hand: contexts of 11 tokens, room 12 - 3 - 1 = 8, step 6: two windows a question.
    assert len(given.lengths) == 24 and given.steps(config) == [3, 3]
    cells = real = 0
    for inputs, targets in given.dataset(model, config, given.targets):
        mask = inputs["padding_mask"].numpy()
        cells, real = cells + mask.size, real + mask.sum()
        assert targets.shape[0] == len(mask) and targets.shape[2] == 2
    assert real == given.lengths.sum()
    assert given.padding_share(config) == pytest.approx(1 - real / cells)


def test_nothing_is_cut_but_long_questions(prepared):
    given, model, _ = prepared
    assert not np.any(given.truncated)
    windows = model.windows(["the film"], ["a a a a"])
    assert windows.packed.truncated.tolist() == [True]
