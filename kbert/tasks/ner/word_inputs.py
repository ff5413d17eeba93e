"""Sentences of given words, as texts with words separated by single blanks."""

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
        """Returns the number of sentences."""
        return len(self.words)

    @property
    def texts(self) -> list[str]:
        """The sentences as texts."""
        return [" ".join(words) for words in self.words]

    def word_starts(self, sentence: int) -> np.ndarray:
        """Returns the code point offset of each word of a sentence in its text."""
        lengths = np.array([len(word) + 1 for word in self.words[sentence]], "int64")
        return np.cumsum(lengths) - lengths


def read_word_inputs(x: Any) -> WordInputs | None:
    """Reads sentences of words in any of their forms.

    Args:
        x: a list of lists of str; a column of such, or a table with a column "words" or "tokens";
            an object with `words`, such as of `kbert.data.entities.tagged_sentences`; or anything
            else.

    Returns:
        The sentences, or None if `x` is something else (token ids, a dataset).

    Raises:
        ValueError: a sentence is one string, or a word is empty or has a blank.
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
