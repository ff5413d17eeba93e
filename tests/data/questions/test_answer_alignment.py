"""Misaligned answers and other places of answers. Expected values by hand."""

import pytest

from kbert.data.questions.answer_alignment import align_answers, all_occurrences
from kbert.data.questions.question_examples import Answer, QuestionExamples

CONTEXT = "Art is art. The art of starting: start, then art."
#          0123456789012345678901234567890123456789012345678
ARTS = [7, 16, 45]  # "art" as a word; it also stands in "starting" (25) and "start" (35)


def examples(*answers, contexts=None, labeled=True):
    count = len(answers)
    return QuestionExamples(
        ids=[f"q{i}" for i in range(count)],
        questions=["?"] * count,
        contexts=contexts or [CONTEXT] * count,
        answers=[[Answer(*answer) for answer in several] for several in answers],
        titles=[""] * count,
        source="f.json",
        paths=[f"line {i + 1}" for i in range(count)],
        labeled=labeled,
    )


def test_the_places_in_the_context():
    assert [i for i in range(len(CONTEXT)) if CONTEXT.startswith("art", i)] == [7, 16, 25, 35, 45]


def test_aligned_answers_stay():
    given = examples([("Art", 0), ("art", 7)], [])
    aligned, report = align_answers(given)
    assert aligned == given
    assert (report.answers, report.misaligned, report.dropped_ids) == (2, 0, ())
    assert str(report) == "f.json: all 2 answers stand at their `answer_start`."


def test_misaligned_answers_are_moved_or_left_out_and_listed():
    given = examples(
        [("Art", 3)],  # its only place is 0
        [("art", 1), ("The", 12)],  # several places: left out, the other answer stays
        [("music", 2)],  # no place: the question goes
        [],  # without answer from the beginning
        [("then", 0), ("opera", 1)],
    )
    aligned, report = align_answers(given)
    assert aligned.ids == ["q0", "q1", "q3", "q4"]
    assert aligned.answers == [[("Art", 0)], [("The", 12)], [], [("then", 40)]]
    assert aligned.paths == ["line 1", "line 2", "line 4", "line 5"]
    assert [(bad.id, bad.places) for bad in report.moved] == [("q0", (0,)), ("q4", (40,))]
    assert [(bad.id, bad.path, bad.answer, bad.places) for bad in report.left_out] == [
        ("q1", "line 2", ("art", 1), (7, 16, 25, 35, 45)),
        ("q2", "line 3", ("music", 2), ()),
        ("q4", "line 5", ("opera", 1), ()),
    ]
    assert (report.answers, report.misaligned, report.dropped_ids) == (6, 5, ("q2",))
    assert str(report).split("\n") == [
        "f.json: 5 of 6 answers do not stand at their `answer_start`.",
        "2 moved to the only place of their text: q0, q4",
        "2 left out, since their text is not in the context: q2, q4",
        "1 left out, since their text stands in several other places: q1",
        "1 questions left out, since no answer is left to them: q2",
    ]


def test_offsets_count_code_points():
    context = "🐸é art"
    aligned, report = align_answers(examples([("art", 5)], [("art", 3)], contexts=[context] * 2))
    assert aligned.answers == [[("art", 3)], [("art", 3)]]
    assert [bad.id for bad in report.moved] == ["q0"]


def test_an_answer_that_runs_over_the_end_is_misaligned():
    aligned, report = align_answers(examples([("art.!", 45)]))
    assert (len(aligned), report.dropped_ids) == (0, ("q0",))


@pytest.mark.parametrize("start", [-9, -1, len(CONTEXT), len(CONTEXT) + 9])
def test_an_offset_outside_of_the_context_is_wrong_too(start):
    assert CONTEXT.startswith("then art.", -9)  # Python counts from the end
    aligned, report = align_answers(examples([("then art.", start), ("The", start)]))
    assert aligned.answers == [[("then art.", 40), ("The", 12)]] and len(report.moved) == 2


def test_long_lists_of_ids_are_cut():
    _, report = align_answers(examples(*[[("x y", 0)]] * 12))
    assert str(report).endswith("q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, ...")


def test_all_occurrences_are_whole_words():
    widened = all_occurrences(examples([("art", 16)], []))
    assert widened.answers == [[("art", 16), ("art", 7), ("art", 45)], []]
    assert sorted(start for _, start in widened.answers[0]) == ARTS


def test_given_answers_stay_first_even_within_a_word_or_twice():
    given = [("art", 25), ("art", 16), ("art", 16), ("start", 33)]
    widened = all_occurrences(examples(given))
    assert widened.answers == [[*given, ("art", 7), ("art", 45)]]


def test_some_ids_only():
    given = examples([("art", 7)], [("art", 7)])
    widened = all_occurrences(given, ids=["q1"])
    assert [len(answers) for answers in widened.answers] == [1, 3]
    assert given.answers[1] == [("art", 7)]  # the examples that came stay as they were
    with pytest.raises(ValueError, match=r"`ids` must be ids .* f\.json\. Received: 1 others: q9"):
        all_occurrences(given, ids=["q1", "q9"])


@pytest.mark.parametrize(
    "context, text, start, places",
    [
        ("1843, 18431, x1843", "1843", 0, [0]),  # digits make words too
        ("ab-ab ab.", "ab", 0, [0, 3, 6]),
        ("e e\u0301 e", "e", 0, [0, 5]),  # a combining mark goes on with its letter
        ("(a) (a)", "(a)", 0, [0, 4]),  # punctuation at the edge joins nothing
        ("aa a aa", "a", 3, [3]),
        ("\u5317\u4eac\u4eba\u7231\u5317\u4eac", "\u5317\u4eac", 0, [0, 4]),  # a word each
    ],
)
def test_what_a_word_is(context, text, start, places):
    widened = all_occurrences(examples([(text, start)], contexts=[context]))
    assert sorted(place for _, place in widened.answers[0]) == places


def test_answers_are_needed():
    for function in (align_answers, all_occurrences):
        with pytest.raises(ValueError, match=r"f\.json: the questions must have answers"):
            function(examples([], labeled=False))
