"""Splits by article and made non-answers. Expected values follow from the definitions."""

from collections.abc import Callable
from types import ModuleType

import pytest

from kbert.data.questions.question_examples import Answer, QuestionExamples
from kbert.data.questions.squad import read_squad


@pytest.fixture
def splits(program: Callable[[str], ModuleType]) -> ModuleType:
    """The part of benchmarks/ that splits questions."""
    return program("side_by_side.question_splits")


def examples(titles, contexts=None, answers=None, labeled=True):
    count = len(titles)
    return QuestionExamples(
        ids=[f"q{i}" for i in range(count)],
        questions=[f"{i}?" for i in range(count)],
        contexts=contexts or [f"context {i}" for i in range(count)],
        answers=answers or [[] for _ in titles],
        titles=list(titles),
        source="f.json",
        paths=[f"line {i + 1}" for i in range(count)],
        labeled=labeled,
    )


def test_articles_stay_whole_and_every_question_comes_once(splits):
    titles = [f"t{i % 23}" for i in range(230)]
    for seed in range(5):
        parts = splits.split_by_title(examples(titles), [0.5, 0.3, 0.2], seed)
        assert sorted(id for part in parts for id in part.ids) == sorted(examples(titles).ids)
        found = [set(part.titles) for part in parts]
        assert sum(len(each) for each in found) == 23  # no title in two parts
        for part, share in zip(parts, (0.5, 0.3, 0.2)):
            assert abs(len(part) - share * 230) < 10  # the largest article has 10 questions
            places = [int(id[1:]) for id in part.ids]
            assert places == sorted(places)


def test_the_seed_decides(splits):
    given = examples([f"t{i // 2}" for i in range(60)])
    first = [part.ids for part in splits.split_by_title(given, [0.5, 0.5], 3)]
    assert [part.ids for part in splits.split_by_title(given, [0.5, 0.5], 3)] == first
    assert [part.ids for part in splits.split_by_title(given, [0.5, 0.5], 4)] != first


def test_without_titles_contexts_stay_whole(splits):
    contexts = [f"context {i % 4}" for i in range(12)]
    parts = splits.split_by_title(examples([""] * 12, contexts), [0.5, 0.5], 1)
    assert [len(part) for part in parts] == [6, 6]
    assert not set(parts[0].contexts) & set(parts[1].contexts)


@pytest.mark.parametrize("shares", [[0.5, 0.4], [1.5, -0.5], [1.0, 0.0], [float("nan"), 1.0], []])
def test_wrong_shares(splits, shares):
    with pytest.raises(ValueError, match=r"`shares` must be positive numbers of sum 1\. Received"):
        splits.split_by_title(examples("ab"), shares, 1)


def test_too_few_articles(splits):
    message = r"`shares` must leave an article for every split.*for 1 articles of f\.json"
    with pytest.raises(ValueError, match=message):
        splits.split_by_title(examples("aaa"), [0.5, 0.5], 1)


CONTEXTS = ["The lamp is RED.", "Boats are red.", "Frogs sing.", "Frogs are green."]


def frogs(**changes):
    """Two articles of two paragraphs; what is red stands in both paragraphs of the first."""
    columns = {
        "titles": ["sea", "sea", "frog", "frog"],
        "contexts": CONTEXTS,
        "answers": [[Answer("RED", 12)], [Answer("Boats", 0)], [Answer("sing", 6)], []],
        **changes,
    }
    return examples(**columns)


def test_a_non_answer_has_another_paragraph_of_its_article_without_the_answer(splits):
    given = frogs()
    with pytest.warns(UserWarning, match=r"f\.json: 2 of 3 questions without answer were made"):
        widened = splits.with_non_answers(given, 1.0, 1)
    # "RED" stands in the other paragraph of the article too, in small letters; q3 has no answer.
    assert widened.ids == ["q0", "q1", "q2", "q3", "q1-none", "q2-none"]
    assert widened.contexts[4:] == [CONTEXTS[0], CONTEXTS[3]]
    assert widened.questions[4:] == ["1?", "2?"]
    assert widened.answers == [*given.answers, [], []]
    assert widened.titles[4:] == ["sea", "frog"]
    assert widened.paths[4:] == ["line 2", "line 3"]
    assert len(given) == 4


def test_the_share_counts_questions_with_an_answer(splits):
    contexts = [f"{i} says {chr(97 + i)}." for i in range(20)]
    answers = [[Answer(chr(97 + i) + ".", 7 if i < 10 else 8)] for i in range(20)]
    given = examples(["t"] * 20, contexts, answers)
    added = {}
    for seed in (1, 2):
        widened = splits.with_non_answers(given, 0.25, seed)
        assert len(widened) == 25
        added[seed] = widened.ids[20:]
        for context, id in zip(widened.contexts[20:], added[seed]):
            assert context != contexts[int(id[1:].removesuffix("-none"))]
    assert added[1] != added[2]
    assert (
        splits.with_non_answers(given, 0.25, 1).contexts
        == splits.with_non_answers(given, 0.25, 1).contexts
    )
    assert len(splits.with_non_answers(given, 0.001, 1)) == 21  # at least one


@pytest.mark.parametrize("share", [0, -0.5, 1.5, float("nan")])
def test_wrong_share(splits, share):
    with pytest.raises(ValueError, match=r"`share` must be above 0 and at most 1\. Received"):
        splits.with_non_answers(frogs(), share, 1)


def test_nothing_to_make_them_from(splits):
    message = r"f\.json: there must be questions with an answer whose article has a"
    with pytest.raises(ValueError, match=message):
        splits.with_non_answers(frogs(titles=[""] * 4), 0.5, 1)
    with pytest.raises(ValueError, match=message):
        splits.with_non_answers(frogs(answers=[[], [], [], []]), 0.5, 1)
    with pytest.raises(ValueError, match=r"f\.json: the questions must have answers"):
        splits.with_non_answers(frogs(labeled=False), 0.5, 1)


def test_made_twice(splits):
    given = splits.with_non_answers(frogs(titles=["x"] * 4), 1.0, 1)
    with pytest.raises(ValueError, match=r"each id must occur once\. Received: 'q0-none'"):
        splits.with_non_answers(given, 1.0, 1)


def test_the_threshold_halves_of_the_public_file(splits, shared_data):
    every = read_squad(shared_data / "squad" / "dev-v2.0.json.gz")
    halves = splits.split_by_title(every, [0.5, 0.5], 1)
    assert sum(len(half) for half in halves) == 11_873
    assert not set(halves[0].titles) & set(halves[1].titles)
    assert len(set(every.titles)) == 35  # Rajpurkar et al. (2018), table 2
