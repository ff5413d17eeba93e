"""Splits of questions that keep articles whole, and questions that their context cannot answer."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kbert.data.questions.question_examples import QuestionExamples, required_answers

_SUM_TOLERANCE = 1e-6
_SUFFIX = "-none"


def split_by_title(
    examples: QuestionExamples, shares: Sequence[float], seed: int
) -> list[QuestionExamples]:
    """Splits questions so that all questions about one article stay together.

    Articles are taken in random order, and each goes to the split that lacks the most questions.
    Where the title is unknown, a context counts as an article of its own.

    `shares` are the fraction of the questions for each split, positive, of sum 1. Each split keeps
    the order of `examples`, and its size differs from its share by less than the largest article.
    """
    good = all(math.isfinite(share) and share > 0 for share in shares)
    if not good or abs(sum(shares) - 1.0) > _SUM_TOLERANCE:
        raise ValueError(
            f"`shares` must be positive numbers of sum 1. Received: shares={list(shares)}"
        )
    articles: dict[tuple[str, str], list[int]] = {}
    for i in range(len(examples)):
        articles.setdefault(_article(examples, i), []).append(i)
    groups = list(articles.values())
    chosen: list[list[int]] = [[] for _ in shares]
    missing = [share * len(examples) for share in shares]
    for group in np.random.default_rng(seed).permutation(len(groups)):
        split = int(np.argmax(missing))
        chosen[split] += groups[group]
        missing[split] -= len(groups[group])
    if not all(chosen):
        raise ValueError(
            f"`shares` must leave an article for every split. Received: shares={list(shares)} for "
            f"{len(groups)} articles of {examples.source}"
        )
    return [examples.select(sorted(indices)) for indices in chosen]


def with_non_answers(examples: QuestionExamples, share: float, seed: int) -> QuestionExamples:
    """Adds questions that their context does not answer, made from questions with an answer.

    A question is paired with another paragraph of the same article, one that holds none of the
    question's answers (ignoring case). Clark and Gardner draw such paragraphs within a document
    ("Simple and Effective Multi-Paragraph Reading Comprehension", 2018).

    `share` questions are added for each one with an answer, above 0 and at most 1, and at least one
    in all. They follow the others in the same order, with "-none" behind their ids and no answers.
    Warns (`UserWarning`) where fewer could be made than requested; none is a ValueError.
    """
    if not 0 < share <= 1:
        raise ValueError(f"`share` must be above 0 and at most 1. Received: share={share}")
    every = required_answers(examples)
    articles: dict[tuple[str, str], dict[str, str]] = {}
    for i, context in enumerate(examples.contexts):
        articles.setdefault(_article(examples, i), {}).setdefault(context, context.casefold())
    answered = [i for i, answers in enumerate(every) if answers]
    wanted = max(1, round(share * len(answered)))
    generator = np.random.default_rng(seed)
    made: dict[int, str] = {}
    for k in generator.permutation(len(answered)):
        if len(made) == wanted:
            break
        i = answered[k]
        texts = [answer.text.casefold() for answer in every[i]]
        found = _without(texts, examples.contexts[i], articles[_article(examples, i)], generator)
        if found is not None:
            made[i] = found
    _check_made(examples.source, len(made), wanted)
    chosen = sorted(made)
    return replace(
        examples,
        ids=examples.ids + [examples.ids[i] + _SUFFIX for i in chosen],
        questions=examples.questions + [examples.questions[i] for i in chosen],
        contexts=examples.contexts + [made[i] for i in chosen],
        answers=every + [[] for _ in chosen],
        titles=examples.titles + [examples.titles[i] for i in chosen],
        paths=examples.paths + [examples.paths[i] for i in chosen],
    )


def _article(examples: QuestionExamples, i: int) -> tuple[str, str]:
    title = examples.titles[i]
    return (title, "") if title else ("", examples.contexts[i])


def _without(
    texts: list[str], context: str, paragraphs: dict[str, str], generator: np.random.Generator
) -> str | None:
    """Draws one of {paragraph: the same, case-folded} that is not `context` and holds no text."""
    names = list(paragraphs)
    for k in generator.permutation(len(names)):
        other = names[k]
        if other != context and not any(text in paragraphs[other] for text in texts):
            return other
    return None


def _check_made(source: str, made: int, wanted: int) -> None:
    if not made:
        raise ValueError(
            f"{source}: there must be questions with an answer whose article has a paragraph "
            "without that answer. Received: none, so no question without answer could be made"
        )
    if made < wanted:
        warnings.warn(
            f"{source}: {made} of {wanted} questions without answer were made; for the others no "
            "other paragraph of their article is without their answers.",
            stacklevel=3,
        )
