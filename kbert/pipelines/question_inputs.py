"""The forms in which questions with contexts may be given to `fit`, `evaluate` and `predict`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kbert.pipelines.text_inputs import as_list, is_texts

_KEYS = ("question", "context")


@dataclass(frozen=True)
class QuestionInputs:
    """Questions, each with the text that answers it or not.

    Attributes:
        questions: n str or bytes.
        contexts: n str or bytes.
    """

    questions: list[Any]
    contexts: list[Any]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.questions)


def read_question_inputs(x: Any) -> QuestionInputs | None:
    """Recognises questions with contexts.

    Args:
        x: a dict {"question", "context"} of lists of str; a tuple of two such lists; something with
            `questions` and `contexts`, as what `kbert.data.squad` reads; or anything else.

    Returns:
        The questions, or None if `x` is something else (token ids, a dataset).

    Raises:
        ValueError: a dict of strings with other keys, a single text, or columns of different
            lengths.
    """
    if hasattr(x, "questions") and hasattr(x, "contexts"):
        columns = [x.questions, x.contexts]
    elif isinstance(x, dict):
        if not any(is_texts(column) or isinstance(column, str | bytes) for column in x.values()):
            return None
        if set(x) != set(_KEYS):
            raise ValueError(
                'a dict of texts must have the keys "question" and "context". '
                f"Received: {sorted(x)}"
            )
        columns = [x[key] for key in _KEYS]
    elif isinstance(x, tuple) and len(x) == 2 and any(map(is_texts, x)):
        columns = list(x)
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
    questions, contexts = (list(_texts(key, as_list(c))) for key, c in zip(_KEYS, columns))
    if len(questions) != len(contexts):
        raise ValueError(
            "`context` must be as long as `question`. "
            f"Received: {len(contexts)} and {len(questions)}"
        )
    return QuestionInputs(questions, contexts)


def _texts(key: str, column: Sequence[Any]) -> Sequence[Any]:
    for number, text in enumerate(column):
        if not isinstance(text, str | bytes):
            raise TypeError(f"`{key}[{number}]` must be str or bytes. Received: {text!r:.80}")
    return column
