"""Search over token sequences in plain Python: one row at a time, no tensor, no trick.

A speaker is a function from what was said (a tuple of tokens, without start and end) to the
log-probability of each next token. Beam search keeps the K best unfinished prefixes; of their 2K
best continuations those that end are answers, and the K best others live on (the bookkeeping of
Vaswani et al.'s own code). The last token that a row may have can only be the end. Answers are
ranked by log-probability / penalty(n), n tokens with the end token (Wu et al. 2016, section 7, for
one such penalty). `brute_force` needs no beam: it looks at all sequences.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Prefix = tuple[int, ...]
Speaker = Callable[[Prefix], list[float]]
Penalty = Callable[[int], float]
NEAR = 1e-4
# An end among this many times K best continuations of a row is an answer.
ENDS_AMONG = 1


@dataclass(frozen=True)
class Answer:
    """One finished hypothesis: tokens with the end token, and its numbers."""

    tokens: Prefix
    log_probability: float
    score: float


@dataclass(frozen=True)
class Search:
    """What a search of one row found.

    Attributes:
        answers: the best first, at most `nbest`.
        steps: how often the speaker's row was asked, a step for the whole beam.
        near: a decision hung on less than `NEAR`, which other arithmetic may turn.
    """

    answers: list[Answer]
    steps: int
    near: bool


def no_penalty(length: int) -> float:
    """1 for every length."""
    return 1.0


def gnmt_penalty(alpha: float) -> Penalty:
    """((5 + n) / 6)^alpha (Wu et al. 2016, equation 14)."""
    return lambda length: ((5.0 + length) / 6.0) ** alpha


def power_penalty(alpha: float) -> Penalty:
    """n^alpha."""
    return lambda length: float(length) ** alpha


def every_sequence(vocabulary_size: int, end_id: int, max_length: int) -> Iterator[Prefix]:
    """All sequences of at most `max_length` tokens whose last token, and no other, is the end."""
    others = [token for token in range(vocabulary_size) if token != end_id]
    for length in range(max_length):
        for words in itertools.product(others, repeat=length):
            yield (*words, end_id)


def count_prefixes(vocabulary_size: int, max_length: int) -> int:
    """How many unfinished prefixes of at most `max_length` tokens there are."""
    return sum((vocabulary_size - 1) ** length for length in range(max_length + 1))


def brute_force(
    speaker: Speaker,
    *,
    vocabulary_size: int,
    end_id: int,
    max_length: int,
    penalty: Penalty = no_penalty,
    nbest: int = 1,
    min_length: int = 1,
) -> list[Answer]:
    """The best of all sequences of min_length to max_length tokens."""
    answers = []
    for tokens in every_sequence(vocabulary_size, end_id, max_length):
        if len(tokens) >= min_length:
            total = sum(speaker(tokens[:i])[token] for i, token in enumerate(tokens))
            answers.append(Answer(tokens, total, total / penalty(len(tokens))))
    return ranked([answer for answer in answers if answer.score > -math.inf])[:nbest]


def ranked(answers: list[Answer]) -> list[Answer]:
    """The best score first; what came first stays first among equals."""
    return sorted(answers, key=lambda answer: -answer.score)


def is_near(numbers: list[float], place: int) -> bool:
    """Whether the numbers, in falling order, are near each other around a cut before `place`."""
    return 0 < place < len(numbers) and numbers[place - 1] - numbers[place] < NEAR


def beam_search(
    speaker: Speaker,
    *,
    beam_size: int,
    end_id: int,
    max_length: int,
    penalty: Penalty = no_penalty,
    nbest: int = 1,
    min_length: int = 1,
) -> Search:
    """The search of the contract for one row.

    Ties go to the better prefix, then to the lower token. Continuations of log-probability -inf do
    not exist; a row without any answer at `max_length` gives its best living hypothesis with an
    end that costs nothing.
    """
    living: list[tuple[Prefix, float]] = [((), 0.0)]
    answers: list[Answer] = []
    near, steps = False, 0
    while steps < max_length and living:
        steps += 1
        allowed = (end_id,) if steps == max_length else None
        continuations = following(living, speaker, allowed, None if steps >= min_length else end_id)
        totals = [total for _, total in continuations]
        near |= is_near(totals, ENDS_AMONG * beam_size) | is_near(totals, 2 * beam_size)
        ended = [c for c in continuations[: ENDS_AMONG * beam_size] if c[0][-1] == end_id]
        answers += [Answer(words, total, total / penalty(steps)) for words, total in ended]
        if steps == max_length and not answers:
            answers = [forced(*living[0], end_id, penalty)]
        others = [c for c in continuations[: 2 * beam_size] if c[0][-1] != end_id]
        near |= is_near([total for _, total in others], beam_size)
        living = others[:beam_size]
        if len(answers) >= beam_size and not can_improve(
            living, ranked(answers)[nbest - 1].score, steps, max_length, penalty
        ):
            break
    answers = ranked(answers)
    scores = [answer.score for answer in answers]
    near |= any(is_near(scores, place) for place in range(1, nbest + 1))
    return Search(answers[:nbest], steps, near)


def following(
    living: list[tuple[Prefix, float]],
    speaker: Speaker,
    allowed: tuple[int, ...] | None,
    forbidden: int | None,
) -> list[tuple[Prefix, float]]:
    """All continuations that exist, the likeliest first."""
    continuations = [
        ((*words, token), total + log_probability)
        for words, total in living
        for token, log_probability in enumerate(speaker(words))
        if log_probability > -math.inf
        and token != forbidden
        and (allowed is None or token in allowed)
    ]
    return sorted(continuations, key=lambda continuation: -continuation[1])


def can_improve(
    living: list[tuple[Prefix, float]],
    worst: float,
    length: int,
    max_length: int,
    penalty: Penalty,
) -> bool:
    """Whether a living hypothesis of `length` tokens may still score above `worst`.

    Its log-probability cannot rise; it ends with length + 1 to max_length tokens.
    """
    lengths = range(length + 1, max_length + 1)
    return any(total / penalty(n) > worst for _, total in living for n in lengths)


def forced(words: Prefix, total: float, end_id: int, penalty: Penalty) -> Answer:
    """A living hypothesis that is made to end: the end token costs nothing."""
    tokens = (*words, end_id)
    return Answer(tokens, total, total / penalty(len(tokens)))


def greedy(speaker: Speaker, *, end_id: int, max_length: int) -> Search:
    """The likeliest token, until it is the end; the last token that a row may have is the end.

    There, an end of log-probability -inf costs nothing.
    """
    words: Prefix = ()
    total, near = 0.0, False
    while len(words) < max_length:
        numbers = speaker(words)
        token = max(range(len(numbers)), key=lambda t: numbers[t])
        if len(words) == max_length - 1:
            token = end_id
            numbers = [0.0 if number == -math.inf else number for number in numbers]
        else:
            near |= is_near(sorted(numbers, reverse=True), 1)
        words, total = (*words, token), total + numbers[token]
        if token == end_id:
            break
    return Search([Answer(words, total, total)], len(words), near)
