import numpy as np
import pytest

from kbert.tasks.inputs import WindowInput, windows_with_answer
from kbert.tasks.question_answering.model import QuestionAnswerer
from kbert.tasks.question_answering.task import TASK
from kbert.tasks.span_tagging.model import SpanTagger


@pytest.fixture(scope="module")
def prepared(tiny, tmp_path_factory):
    output = tmp_path_factory.mktemp("o") / "o"
    config = tiny.reading(output, "question-answering", tiny.questions)
    model = QuestionAnswerer.from_pretrained(
        tiny.encoder, max_sequence_length=12, stride=2, max_question_length=3
    )
    return TASK.inputs(model, TASK.read(config, "train")), model, config


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
    windows = model.batching.windows(["the film"], ["a a a a"])
    assert windows.packed.truncated.tolist() == [True]


def spans_of(windows, chosen):
    """(question, first token) of windows."""
    return set(zip(windows.row[chosen].tolist(), windows.first[chosen].tolist()))


def test_windows_without_the_answer_are_drawn(prepared):
    """Each question has two windows here; where both hold the answer there is no other one."""
    given, model, config = prepared
    has_answer = given.targets[:, 0, 0] > 0
    assert 0 < has_answer.sum() < len(has_answer)
    none = given.with_others(0, seed=1)
    assert spans_of(none.examples, slice(None)) == spans_of(given.examples, has_answer)
    assert none.lengths.sum() < given.lengths.sum()
    assert np.all(none.targets[:, 0, 0] > 0)
    every = given.with_others(1, seed=1)
    assert len(every.examples) == len(given.examples)
    batches = none.dataset(model, config, none.targets)
    rows = [len(inputs["padding_mask"]) for inputs, _ in batches]
    assert sum(rows) == has_answer.sum() and len(rows) == none.steps(config)[0]


def test_windows_of_tags_are_drawn(tiny):
    """The window in which an answer's tokens count is the one with the answer."""
    model = SpanTagger.from_pretrained(
        tiny.encoder, max_sequence_length=12, stride=2, max_question_length=3
    )
    context = "the film was a bad film and the plot was thin"
    start = context.index("thin")
    answers = [[{"text": "thin", "answer_start": start}], []]
    windows, targets = model.examples(model.read_inputs((["a", "a"], [context] * 2)), answers)
    given = WindowInput(windows, targets)
    assert windows_with_answer(windows, targets).tolist() == [False, True, False, False]
    kept = given.with_others(0, seed=1)
    assert kept.examples.row.tolist() == [0] and kept.examples.first.tolist() == [windows.first[1]]
    (batch,) = model.dataset(kept.examples, kept.targets)
    assert batch[1].numpy()[0].sum(axis=0).tolist()[0] == 1.0  # one B
