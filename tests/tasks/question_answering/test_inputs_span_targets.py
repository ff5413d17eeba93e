"""Answers as tokens of windows, against a search through all cells."""

import functools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbert.data.batches.windowed_examples import WindowedExamples, window_examples
from kbert.data.questions.question_examples import Answer
from kbert.tasks.question_answering.inputs import (
    answer_tokens,
    read_answers,
    read_opinions,
    span_targets,
)
from tests.small_pipelines import TOKENIZER

CONTEXT = "the good film, the bad film! goodness"
# Tokens: the0 good1 film2 ,3 the4 bad5 film6 !7 good8 ##ness9


def windows(contexts, length=9, stride=2) -> WindowedExamples:
    """Windows of 5 tokens, of which two share 2, after [CLS], a question of one token, [SEP]."""
    return made_once(tuple(contexts), length, stride)


@functools.cache  # it traces graphs
def made_once(contexts, length, stride) -> WindowedExamples:
    return window_examples(TOKENIZER, contexts, ["a"] * len(contexts), length, stride, 1)


def touched(found: WindowedExamples, row: int, start: int, end: int) -> list[int]:
    """The tokens of which some code point lies between start and end."""
    starts, ends = found.places.of(int(found.context[row]))
    return [i for i, (s, e) in enumerate(zip(starts, ends)) if s < end and e > start]


def expected_targets(found: WindowedExamples, answers) -> list[set[tuple[int, int]]]:
    """For each window the spans that lie in it as a whole; [CLS] where there are none."""
    targets = []
    for number in range(len(found)):
        row, first, size = (int(x[number]) for x in (found.row, found.first, found.size))
        begin = int(found.begin[number])
        cells = {token: begin + token - first for token in range(first, first + size)}
        spans = set()
        for text, start in answers[row]:
            tokens = touched(found, row, start, start + len(text))
            if tokens and all(token in cells for token in tokens):
                spans.add((cells[tokens[0]], cells[tokens[-1]]))
        targets.append(spans or {(0, 0)})
    return targets


def as_sets(targets: np.ndarray) -> list[set[tuple[int, int]]]:
    rows = []
    for of_window in targets.tolist():
        given = [tuple(pair) for pair in of_window if pair != [-1, -1]]
        assert len(set(given)) == len(given)  # none twice
        rows.append(set(given))
    return rows


def test_forms_of_answers():
    found = read_answers(
        [
            [{"text": "a", "answer_start": 3}, {"text": "b", "start": np.int64(4)}],
            [],
            [("c", 5), ["d", 6], Answer("e", 7)],
            {"text": ["f", "g"], "answer_start": [8, 9]},
            {"text": np.array([], object), "answer_start": np.array([], int)},
        ]
    )
    thrice = [("c", 5), ("d", 6), ("e", 7)]
    assert found == [[("a", 3), ("b", 4)], [], thrice, [("f", 8), ("g", 9)], []]


@pytest.mark.parametrize(
    "one",
    [{"text": "a"}, {"answer_start": 3}, "a", ("a", "3"), ("a", 1, 2), (1, "a"), ("", 1), None],
)
def test_what_is_no_answer_is_named(one):
    message = (
        "`y[1][0]` must be an answer: a text and the code point where it starts. "
        f"Received: {one!r}"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        read_answers([[], [one]])


@pytest.mark.parametrize("several", [{"text": "a", "answer_start": 3}, "a"])
def test_answers_that_are_no_list_are_named(several):
    message = f"`y[1]` must be a list of answers. Received: {several!r}"
    for read in (read_answers, read_opinions):
        with pytest.raises(ValueError, match=re.escape(message)):
            read([[], several])


def test_opinions_are_answers_or_lists_of_answers():
    one = {"text": "a", "answer_start": 3}
    found = read_opinions([[one, [one, ("b", 5)], []], [], [("c", 1), ["d", 2], [["e", 4]]]])
    assert found[0] == [[("a", 3)], [("a", 3), ("b", 5)], []] and found[1] == []
    assert found[2] == [[("c", 1)], [("d", 2)], [("e", 4)]]
    message = "`y[0][1]` must be an answer: a text and the code point where it starts."
    with pytest.raises(ValueError, match=re.escape(message)):
        read_opinions([[one, [one, "b"]]])


def test_by_hand():
    """Windows of tokens 0-4, 3-7 and 6-9 behind [CLS] a [SEP]: their contexts begin at cell 3."""
    found = windows([CONTEXT])
    assert found.first.tolist() == [0, 3, 6] and found.size.tolist() == [5, 5, 4]
    answers = [
        [
            ("good film", 4),  # tokens 1-2
            ("film", 9),  # token 2, begins inside the answer before
            ("bad film", 19),  # tokens 5-6
            ("oodne", 30),  # inside of "goodness": touches tokens 8-9
        ]
    ]
    targets = span_targets(found, [CONTEXT], answers)
    assert targets.dtype == np.int32
    assert as_sets(targets) == [{(4, 5), (5, 5)}, {(5, 6)}, {(5, 6)}]
    rows, numbers, first, last = answer_tokens(found, [CONTEXT], answers)
    assert rows.tolist() == [0] * 4 and numbers.tolist() == [0, 1, 2, 3]
    assert list(zip(first.tolist(), last.tolist())) == [(1, 2), (2, 2), (5, 6), (8, 9)]


def test_an_answer_across_the_edge_of_a_window_is_none_there():
    # "film, the bad" is tokens 2-5: no window holds them all.
    targets = span_targets(windows([CONTEXT]), [CONTEXT], [[("film, the bad", 9)]])
    assert as_sets(targets) == [{(0, 0)}] * 3
    # In windows with more room it is an answer.
    targets = span_targets(windows([CONTEXT], 20), [CONTEXT], [[("film, the bad", 9)]])
    assert as_sets(targets) == [{(5, 8)}]


def test_answers_that_touch_the_same_tokens_count_once():
    answers = [[("good film", 4), ("good film", 4), ("ood film", 5)]]
    targets = span_targets(windows([CONTEXT]), [CONTEXT], answers)
    assert targets.shape == (3, 1, 2) and as_sets(targets)[0] == {(4, 5)}


@pytest.mark.parametrize("answers", [[], [("", 3)], [(" ", 3)]])
def test_answers_without_tokens_are_none(answers):
    targets = span_targets(windows([CONTEXT]), [CONTEXT], [answers])
    assert targets.tolist() == [[[0, 0]]] * 3
    # The others keep their numbers.
    _, numbers, first, _ = answer_tokens(windows([CONTEXT]), [CONTEXT], [[*answers, ("the", 0)]])
    assert numbers.tolist() == [len(answers)] and first.tolist() == [0]


def test_broken_bytes_count_as_python_decodes_them():
    context = b"\xff\xff a \xc3 good \xe4\xb8 film"
    text = context.decode("utf-8", "replace")
    start = text.index("good")
    targets = span_targets(windows([context]), [context], [[(text[start:], start)]])
    assert as_sets(targets) == [{(4, 5)}]  # tokens: a good film


def test_no_rows():
    assert span_targets(windows([]), [], []).shape == (0, 1, 2)


@pytest.mark.parametrize(
    "answer, message",
    [
        (("film", 8), "'film' at 8, where the context has ' fil'"),
        (("film", 99), "'film' at 99, where the context has ''"),
        (("film", -4), "'film' at -4, where the context has 'the '"),
    ],
)
def test_an_answer_that_stands_elsewhere_is_named(answer, message):
    expected = (
        "`y[1]` must hold answers that stand in the context at their start. Received: " + message
    )
    contexts = [CONTEXT, CONTEXT]
    with pytest.raises(ValueError, match=re.escape(expected)):
        span_targets(windows(contexts), contexts, [[], [("the", 0), answer]])


pieces = st.text(st.sampled_from("ab é中.!\u0301\u200b"), max_size=30)


@settings(max_examples=2)  # each traces graphs
@given(st.lists(pieces, min_size=10, max_size=20), st.data())
def test_random_answers(contexts: list[str], data: st.DataObject):
    answers = []
    for text in contexts:
        ends = st.tuples(*[st.integers(0, len(text))] * 2).map(sorted)
        drawn = data.draw(st.lists(ends, max_size=3))
        answers.append([(text[start:end], start) for start, end in drawn if start < end])
    found = windows(contexts, 10, 3)
    targets = span_targets(found, contexts, answers)
    assert as_sets(targets) == expected_targets(found, answers)
    for of_window, length in zip(targets, found.packed.lengths, strict=True):
        for first, last in of_window:
            assert -1 <= first <= last < length
