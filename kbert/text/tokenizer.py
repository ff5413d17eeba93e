"""`Tokenizer`, what models on raw text ask of the tokenizer of an encoder.

Shapes: B texts.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import tensorflow as tf

from kbert.text.vocabulary import Vocabulary


class TokenOffsets(NamedTuple):
    """Tokens and their offsets in the text. All are ragged int32 (B, (tokens)).

    `text.encode()[start_byte:end_byte]` and `text[start:end]` are the same slice of the original
    text, for a text that is UTF-8. A broken sequence of bytes counts as the one U+FFFD, or the
    several, that `bytes.decode("utf-8", "replace")` replaces it by.
    """

    token_ids: tf.RaggedTensor
    start_byte: tf.RaggedTensor  # first byte of each token in its row
    end_byte: tf.RaggedTensor  # the byte after its last
    start: tf.RaggedTensor  # first code point (Python's `str` index) of each token in its row
    end: tf.RaggedTensor  # the code point after its last


@runtime_checkable
class Tokenizer(Protocol):
    """Maps text to token ids, as graph code.

    Its class is registered with Keras, and its configuration holds all that it needs, in JSON's
    types.
    """

    vocabulary: Vocabulary
    lowercase: bool  # whether letters are lower-cased
    special_tokens_in_text: bool  # whether "[MASK]" typed in a text is that token
    rules: tuple[str, ...]  # further arguments of the constructor that folders of models keep

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Returns the token ids of texts, string (B,), without special tokens: (B, (tokens))."""

    def tokenize_with_offsets(self, text: tf.Tensor) -> TokenOffsets:
        """Returns the token ids of texts, string (B,), and their offsets in the original texts."""

    def files(self) -> dict[str, bytes]:
        """Returns the files of the vocabulary by the names that they have on disk."""

    def __hash__(self) -> int:
        """Returns a number, for caches of what is made of a tokenizer."""

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Tokenizer":
        """Makes the tokenizer of a configuration from `get_config`."""


def check_flags(**flags: Any) -> None:
    """Raises a TypeError for a setting that is neither True nor False: "no" would count as True."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"`{name}` must be True or False. Received: {name}={flag!r}")
