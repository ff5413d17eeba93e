"""Forms of questions with contexts for `fit`, `evaluate` and `predict`."""

from dataclasses import dataclass
from typing import Any

from kbert.pipelines.base.text_inputs import (
    as_column,
    checked_texts,
    dict_of_texts,
    is_texts,
    read_columns,
)

_KEYS = ("question", "context")


@dataclass(frozen=True)
class QuestionInputs:
    """Questions, each with a text that may or may not answer it.

    Attributes:
        questions: n str or bytes.
        contexts: n str or bytes.
    """

    questions: list[Any]
    contexts: list[Any]

    def __len__(self) -> int:
        """Returns the number of questions."""
        return len(self.questions)


def read_question_inputs(x: Any) -> QuestionInputs | None:
    """Reads questions with contexts in any of their forms.

    Args:
        x: a dict {"question", "context"} of lists of str; a table with these columns; a tuple of
            two such lists; an object with `questions` and `contexts`, such as of
            `kbert.data.questions.squad`; or anything else.

    Returns:
        The questions, or None if `x` is something else (token ids, a dataset).

    Raises:
        ValueError: a dict or table with other names, a single text, or columns of different
            lengths.
        TypeError: an entry is not a text.
    """
    x = read_columns(x, _KEYS)
    if hasattr(x, "questions") and hasattr(x, "contexts"):
        columns = [x.questions, x.contexts]
    elif isinstance(x, dict):
        found = dict_of_texts(x, _KEYS)
        if found is None:
            return None
        columns = found
    elif isinstance(x, tuple) and len(x) == 2 and any(map(is_texts, map(as_column, x))):
        columns = list(map(as_column, x))
    elif is_texts(x) or isinstance(x, str | bytes):
        raise ValueError(
            "`x` must be questions with contexts: a dict of two lists or a tuple of two. "
            f"Received: {type(x).__name__} of texts"
        )
    else:
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
