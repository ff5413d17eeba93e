"""Sentences of given words, as text whose words stand between single blanks."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.pipelines.base.text_inputs import as_column, read_columns


@dataclass(frozen=True)
class WordInputs:
    """Sentences of words.

    Attributes:
        words: n lists of words without blanks.
    """

    words: list[list[str]]

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self.words)

    @property
    def texts(self) -> list[str]:
        """The sentences as texts."""
        return [" ".join(words) for words in self.words]

    def word_starts(self, sentence: int) -> np.ndarray:
        """The code point where each word of a sentence begins in its text."""
        lengths = np.array([len(word) + 1 for word in self.words[sentence]], "int64")
        return np.cumsum(lengths) - lengths


def read_word_inputs(x: Any) -> WordInputs | None:
    """Recognises sentences of words.

    Args:
        x: a list of lists of str; a column of such, or a table with a column "words" or "tokens";
            something with `words`, as what `kbert.data.entities.conll` reads; or anything else.

    Returns:
        The sentences, or None if `x` is something else (token ids, a dataset).

    Raises:
        ValueError: a sentence is one string, or a word holds a blank or nothing.
    """
    x = read_columns(x, ("words",), ("tokens",))
    if isinstance(x, dict) and set(x) <= {"words", "tokens"}:
        (x,) = x.values()
    words = as_column(getattr(x, "words", x))
    if not isinstance(words, list | tuple):
        return None
    for number, sentence in enumerate(words):
        if not isinstance(sentence, list | tuple | np.ndarray):
            raise ValueError(
                f"`x[{number}]` must be a list of words. Received: {sentence!r:.80}"
            )
        for word in sentence:
            if not isinstance(word, str) or not word or " " in word:
                raise ValueError(
                    f"`x[{number}]` must hold words without blanks. Received: {word!r:.80}"
                )
    return WordInputs([list(sentence) for sentence in words])
