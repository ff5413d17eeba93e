"""Offsets of answers in their contexts: misaligned answers, and further occurrences of answers."""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from kbert.data.questions.question_examples import Answer, QuestionExamples, required_answers
from kbert.text.wordpiece.normalization import IDEOGRAPHS, code_points

_LISTED = 10


class MisalignedAnswer(NamedTuple):
    """An answer whose text is not at its `start` in the context."""

    id: str  # the question's id
    path: str  # the question's location in its source
    answer: Answer  # the answer as it was read
    # offsets of its text in the context, in code points; () if it does not occur
    places: tuple[int, ...]


@dataclass(frozen=True)
class AlignmentReport:
    """Report of `align_answers`. `str()` returns the counts in words, with the first ids of each
    kind.
    """

    source: str
    answers: int  # number of all answers
    # answers that were moved to the only occurrence of their text
    moved: tuple[MisalignedAnswer, ...]
    # answers that were left out, since their text does not occur, or occurs several times
    left_out: tuple[MisalignedAnswer, ...]
    dropped_ids: tuple[str, ...]  # questions that were left out, since they lost all answers

    @property
    def misaligned(self) -> int:
        """The number of answers that are not at their `start`."""
        return len(self.moved) + len(self.left_out)

    def __str__(self) -> str:
        if not self.misaligned:
            return f"{self.source}: all {self.answers} answers stand at their `answer_start`."
        absent = [bad.id for bad in self.left_out if not bad.places]
        several = [bad.id for bad in self.left_out if bad.places]
        kinds = (
            ("moved to the only place of their text", [bad.id for bad in self.moved]),
            ("left out, since their text is not in the context", absent),
            ("left out, since their text stands in several other places", several),
        )
        lines = [
            f"{self.source}: {self.misaligned} of {self.answers} answers do not stand at their "
            "`answer_start`."
        ]
        lines += [f"{len(ids)} {words}: {_listed(ids)}" for words, ids in kinds if ids]
        if self.dropped_ids:
            lines.append(
                f"{len(self.dropped_ids)} questions left out, since no answer is left to them: "
                f"{_listed(self.dropped_ids)}"
            )
        return "\n".join(lines)


def align_answers(examples: QuestionExamples) -> tuple[QuestionExamples, AlignmentReport]:
    """Aligns every answer with its text in the context, for training.

    A misaligned answer, for which `context[start:start + len(text)] != text`, is moved where its
    text occurs exactly once; otherwise it is left out. A question that loses its last answer is
    left out too: without one it would teach that the context does not answer it. SQuAD's official
    metrics need none of this, since they compare texts.
    """
    every = required_answers(examples)
    moved: list[MisalignedAnswer] = []
    left_out: list[MisalignedAnswer] = []
    dropped: list[str] = []
    aligned: list[list[Answer]] = []
    for i, (context, answers) in enumerate(zip(examples.contexts, every)):
        good = []
        for answer in answers:
            if answer.is_in(context):
                good.append(answer)
                continue
            places = tuple(_places(context, answer.text))
            bad = MisalignedAnswer(examples.ids[i], examples.paths[i], answer, places)
            if len(places) == 1:
                good.append(Answer(answer.text, places[0]))
                moved.append(bad)
            else:
                left_out.append(bad)
        aligned.append(good)
        if answers and not good:
            dropped.append(examples.ids[i])
    count = sum(len(answers) for answers in every)
    report = AlignmentReport(examples.source, count, tuple(moved), tuple(left_out), tuple(dropped))
    gone = set(dropped)
    kept = [i for i, id in enumerate(examples.ids) if id not in gone]
    return replace(examples, answers=aligned).select(kept), report


def all_occurrences(
    examples: QuestionExamples, ids: Iterable[str] | None = None
) -> QuestionExamples:
    """Adds to questions every occurrence of their answers' texts in the context.

    Data whose `answer_start` was guessed may teach any of these. The given answers stay, in their
    order; further occurrences follow from left to right. Those inside a longer word ("art" in
    "start") do not count. `ids` are the questions to treat; None treats all.
    """
    every = required_answers(examples)
    chosen = set(examples.ids if ids is None else ids)
    unknown = sorted(chosen.difference(examples.ids))
    if unknown:
        raise ValueError(
            f"`ids` must be ids of the questions of {examples.source}. Received: {len(unknown)} "
            f"others: {_listed(unknown)}"
        )
    widened = []
    for id, context, answers in zip(examples.ids, examples.contexts, every):
        if id in chosen:
            texts = dict.fromkeys(answer.text for answer in answers)
            further = {
                Answer(text, place)
                for text in texts
                for place in _places(context, text)
                if not (_joined(context, place) or _joined(context, place + len(text)))
            }
            answers = answers + sorted(further.difference(answers), key=lambda a: (a.start, a.text))
        widened.append(answers)
    return replace(examples, answers=widened)


def _places(context: str, text: str) -> Iterator[int]:
    """Yields the offsets of a text, overlapping occurrences too."""
    place = context.find(text)
    while place >= 0:
        yield place
        place = context.find(text, place + 1)


def _joined(context: str, place: int) -> bool:
    """Returns whether the characters on both sides of an offset belong to one word."""
    if not 0 < place < len(context):
        return False
    return _in_word(context[place - 1]) and _in_word(context[place])


@cache
def _ideographs() -> set[int]:
    return set(code_points(IDEOGRAPHS).tolist())


def _in_word(character: str) -> bool:
    if ord(character) in _ideographs():
        return False  # it is a word of its own
    # Combining marks are not letters, yet they belong to the word.
    return character.isalnum() or unicodedata.category(character).startswith("M")


def _listed(ids: Iterable[str]) -> str:
    every = list(ids)
    return ", ".join(every[:_LISTED]) + (", ..." if len(every) > _LISTED else "")
