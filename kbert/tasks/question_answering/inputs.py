"""Questions with contexts, and their answers, in texts and as positions of tokens in windows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.batches.windowed_examples import WindowedExamples
from kbert.optimization.sequence_losses import ABSENT
from kbert.pipelines.text_inputs import (
    as_column,
    checked_texts,
    dict_of_texts,
    is_texts,
    read_columns,
)

_KEYS = ("question", "context")


@dataclass(frozen=True)
class QuestionInputs:
    """Questions, n str or bytes, each with a text that may or may not answer it."""

    questions: list[Any]
    contexts: list[Any]

    def __len__(self) -> int:
        return len(self.questions)


def read_question_inputs(x: Any) -> QuestionInputs | None:
    """Reads questions with contexts in any of their forms; returns None for something else.

    These are a dict {"question", "context"} of lists of str, a table with these columns, a tuple of
    two such lists, and an object with `questions` and `contexts`, such as `QuestionExamples`.

    Raises:
        ValueError: a dict or table with other names, a single text, or columns of different
            lengths.
        TypeError: an entry is not a text.
    """
    x = read_columns(x, _KEYS)
    if hasattr(x, "questions") and hasattr(x, "contexts"):
        columns: list[Any] | None = [x.questions, x.contexts]
    elif isinstance(x, dict):
        columns = dict_of_texts(x, _KEYS)
    elif isinstance(x, tuple) and len(x) == 2 and any(map(is_texts, map(as_column, x))):
        columns = list(map(as_column, x))
    elif is_texts(x) or isinstance(x, str | bytes) or _are_rows(x):
        held = f" that begins with {x[0]!r:.80}" if _are_rows(x) else " of texts"
        raise ValueError(
            "`x` must be questions with contexts: a dict of two lists or a tuple of two. "
            f"Received: {type(x).__name__}{held}"
        )
    else:
        columns = None
    if columns is None:
        return None
    for key, column in zip(_KEYS, columns):
        if not is_texts(column):
            raise ValueError(f"`{key}` must be a list of texts. Received: {key}={column!r:.80}")
    questions, contexts = (checked_texts(key, c) for key, c in zip(_KEYS, columns))
    if len(questions) != len(contexts):
        raise ValueError(
            "`context` must be as long as `question`. "
            f"Received: {len(contexts)} and {len(questions)}"
        )
    return QuestionInputs(questions, contexts)


def _are_rows(x: Any) -> bool:
    """Returns whether a list holds question and context of each row, not two columns of them."""
    first = x[0] if isinstance(x, list) and x else None
    return isinstance(first, dict) or isinstance(first, list | tuple) and is_texts(first)


# The answers of each example: a text and its code point offset.
Answers = Sequence[Sequence[Any]]


def read_answers(answers: Answers) -> list[list[tuple[str, int]]]:
    """Reads the answers of each example, perhaps none, in any of their forms.

    These are a list of {"text", "answer_start"} (or "start") or of (text, start), and
    {"text", "answer_start"} of two lists, Hugging Face's SQuAD format.

    Raises:
        ValueError: an entry is neither; the message names example and entry.
    """
    return [
        [_answer(row, number, one) for number, one in enumerate(_in_rows(row, several))]
        for row, several in enumerate(answers)
    ]


def read_opinions(answers: Answers) -> list[list[list[tuple[str, int]]]]:
    """Reads the answers of several annotators.

    Each example has a list, perhaps empty, of annotations: an answer in a form of `read_answers`,
    or a list of such, perhaps empty.

    Raises:
        ValueError: an entry is neither; the message names example and entry.
    """
    return [
        [_opinion(row, number, one) for number, one in enumerate(_in_rows(row, several))]
        for row, several in enumerate(answers)
    ]


def _in_rows(row: int, several: Any) -> Any:
    """Converts answers in a dict of columns to a list."""
    if isinstance(several, Mapping) and isinstance(several.get("text"), list | np.ndarray):
        return list(zip(several["text"], several.get("answer_start", []), strict=True))
    if isinstance(several, Mapping | str | bytes):
        raise ValueError(f"`y[{row}]` must be a list of answers. Received: {several!r:.80}")
    return several


def _opinion(row: int, number: int, one: Any) -> list[tuple[str, int]]:
    is_list = isinstance(one, list) and not (len(one) == 2 and isinstance(one[0], str))
    return [_answer(row, number, answer) for answer in (one if is_list else [one])]


def _answer(row: int, number: int, one: Any) -> tuple[str, int]:
    if isinstance(one, Mapping):
        text, start = one.get("text"), one.get("answer_start", one.get("start"))
    elif isinstance(one, tuple | list) and len(one) == 2:
        text, start = one
    else:
        text, start = None, None
    if not isinstance(text, str) or not text or not isinstance(start, int | np.integer):
        raise ValueError(
            f"`y[{row}][{number}]` must be an answer: a text and the code point where it starts. "
            f"Received: {one!r:.80}"
        )
    return text, int(start)


def span_targets(
    windows: WindowedExamples, contexts: Sequence[Any], answers: Sequence[Sequence[tuple[str, int]]]
) -> np.ndarray:
    """Returns the positions of each answer's first and last token in windows, int32 (W, K, 2).

    A window has the answers that lie in it completely; one without any has [CLS], position 0.
    Positions are -1 where there are fewer than K answers.

    Raises:
        ValueError: an answer is not at its offset; the message names the example.
    """
    rows, _, first, last = answer_tokens(windows, contexts, answers)
    # Each answer is combined with each window of its example.
    begin = np.searchsorted(windows.row, rows, side="left")
    count = np.searchsorted(windows.row, rows, side="right") - begin
    pair = np.repeat(np.arange(len(rows)), count)
    window = np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count)
    window = window + np.repeat(begin, count)
    inside = (first[pair] >= windows.first[window]) & (
        last[pair] < windows.first[window] + windows.size[window]
    )
    pair, window = pair[inside], window[inside]
    shift = windows.begin[window] - windows.first[window]
    spans = np.stack([first[pair] + shift, last[pair] + shift], axis=-1)
    # Duplicate spans are redundant; `unique` also sorts by window.
    table = np.unique(np.concatenate([window[:, None], spans], axis=-1), axis=0)
    window, spans = table[:, 0], table[:, 1:]
    sizes = np.bincount(window, minlength=len(windows))
    targets = np.full((len(windows), max(1, sizes.max(initial=0)), 2), ABSENT, "int32")
    targets[:, 0] = 0
    number = np.arange(len(window)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    targets[window, number] = spans
    return targets


def answer_tokens(
    windows: WindowedExamples, contexts: Sequence[Any], answers: Sequence[Sequence[tuple[str, int]]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Finds the tokens that each answer overlaps.

    For each answer that overlaps a token, in the order of examples, these are the index of the
    example, the index in its answers, the first and the last context token; int64 (answers,) each.

    Raises:
        ValueError: an answer is not at its offset; the message names the example.
    """
    found = []
    for row, several in enumerate(answers):
        if not several:
            continue
        context = contexts[row]
        text = context.decode("utf-8", "replace") if isinstance(context, bytes) else context
        starts, ends = windows.places.of(int(windows.context[row]))
        for number, (answer, start) in enumerate(several):
            if start < 0 or text[start : start + len(answer)] != answer:
                raise ValueError(
                    f"`y[{row}]` must hold answers that stand in the context at their start. "
                    f"Received: {answer!r:.80} at {start}, where the context has "
                    f"{text[max(0, start) : max(0, start) + len(answer)]!r:.80}"
                )
            first = int(np.searchsorted(ends, start, side="right"))
            last = int(np.searchsorted(starts, start + len(answer), side="left")) - 1
            if first <= last:
                found.append((row, number, first, last))
    table = np.array(found, "int64").reshape(-1, 4)
    return table[:, 0], table[:, 1], table[:, 2], table[:, 3]
