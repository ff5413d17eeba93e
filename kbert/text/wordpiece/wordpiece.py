"""BERT's tokenizer as a TensorFlow graph."""

import functools
import os
import re
from typing import Any

import keras
import tensorflow as tf
import tensorflow_text as tf_text

from kbert.architectures import loaded
from kbert.text.graph_functions import checked_text, row_ids
from kbert.text.tokenizer import TokenOffsets, check_flags
from kbert.text.vocabulary import BERT_TOKENS, Vocabulary
from kbert.text.wordpiece.code_point_table import SPECIAL_FILLER, build_table, special_markers
from kbert.text.wordpiece.normalization import NormalizationRules
from kbert.text.wordpiece.normalizer import (
    MAX_CHARACTERS_PER_WORD,
    DecodedText,
    Normalizer,
    decode,
    original_offsets,
)

# Rows that need no normalizer to match the reference: printable ASCII and the white space that the
# reference keeps, no word too long. One pass of an automaton of about a hundred states.
_SIMPLE_ROW = (
    rf"(?:[0-9A-Za-z]{{0,{MAX_CHARACTERS_PER_WORD}}}[\t\n\r -/:-@\[-`{{-~])*"
    rf"[0-9A-Za-z]{{0,{MAX_CHARACTERS_PER_WORD}}}"
)
_LONGEST_CHARACTER = 4  # bytes of UTF-8


@keras.saving.register_keras_serializable("kbert")
class WordPiece:
    """Maps text to token ids, like the tokenizer of the published BERT models.

    The ids, and the offsets, are those of Hugging Face `tokenizers`' `BertWordPieceTokenizer`
    (google-research/bert `tokenization.py`, one code point at a time). All of it is graph code of
    core ops and tensorflow-text's FastWordpieceTokenizer, for tf.data, tf.function and SavedModels
    alike; the vocabulary is in the graph as constants.

    Bytes that are not UTF-8 are decoded like `bytes.decode("utf-8", "replace")`, and the resulting
    U+FFFD are dropped, like those that a user typed.

    Use it on batches: `dataset.batch(256).map(tokenizer.tokenize, num_parallel_calls=...)`.

    Args:
        vocabulary: The tokens.
        lowercase: Whether letters are lower-cased.
        special_tokens_in_text: Whether "[MASK]", "[SEP]" and the other special tokens, typed in the
            text, are those tokens. Otherwise they are plain text, as a user's input should be.
        strip_accents: Whether accents are stripped; None means the value of `lowercase`.
        handle_cjk: Whether each Chinese character is a word of its own.

    Raises:
        TypeError: `vocabulary` is no Vocabulary, or another argument no bool.
        ValueError: its tokens are bytes, or its special tokens others than BERT's.
    """

    rules: tuple[str, ...] = ("strip_accents", "handle_cjk")

    def __init__(
        self,
        vocabulary: Vocabulary,
        lowercase: bool = True,
        special_tokens_in_text: bool = False,
        strip_accents: bool | None = None,
        handle_cjk: bool = True,
    ) -> None:
        if not isinstance(vocabulary, Vocabulary):
            raise TypeError(
                f"`vocabulary` must be a kbert.Vocabulary. Received: vocabulary={vocabulary!r}"
            )
        if vocabulary.special_tokens.byte_level:
            raise ValueError(
                "`vocabulary` must be one of WordPiece. Received: one of a byte-level BPE, "
                f"{vocabulary!r}"
            )
        if vocabulary.special_tokens != BERT_TOKENS:  # of which `vocab.txt` says nothing
            raise ValueError(
                "`vocabulary` must have BERT's special tokens, as [CLS]. Received: "
                f"{vocabulary.special_tokens}"
            )
        strip = lowercase if strip_accents is None else strip_accents
        check_flags(lowercase=lowercase, special_tokens_in_text=special_tokens_in_text)
        check_flags(strip_accents=strip, handle_cjk=handle_cjk)
        self.vocabulary = vocabulary
        self.lowercase = lowercase
        self.special_tokens_in_text = special_tokens_in_text
        self.strip_accents = strip_accents
        self.handle_cjk = handle_cjk
        rules = NormalizationRules(lowercase, strip, handle_cjk)
        self._normalizer, self._matcher = _graph_parts(vocabulary, rules, special_tokens_in_text)

    @classmethod
    def from_pretrained(
        cls, name_or_directory: str | os.PathLike[str], **kwargs: Any
    ) -> "WordPiece":
        """Makes the tokenizer of a published encoder, or of the folder of a model.

        Args:
            name_or_directory: A known name, an `org/name` of the Hugging Face hub, or a directory,
                as for `kbert.Bert.from_pretrained`.
            **kwargs: Arguments of the constructor that replace the checkpoint's, such as
                `special_tokens_in_text`.

        Raises:
            ValueError: It is no checkpoint, has no vocabulary, or one of a byte-level BPE.
            FileNotFoundError: The directory or name does not exist.
            TypeError: An argument is unknown.
        """
        read = loaded("kbert.pipelines.tokenizers.pretrained_tokenizer")
        found: WordPiece = read(name_or_directory, cls, **kwargs)
        return found

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Returns the token ids of each text, without special tokens.

        Args:
            text: UTF-8, tf.string (B,).

        Returns:
            RaggedTensor (B, (tokens)), int32.

        Raises:
            TypeError: `text` is not a string tensor.
            ValueError: `text` is not of rank 1.
        """
        text = checked_text(text)
        is_simple = self._is_simple(text)

        def normalize_some() -> tf.Tensor:
            rows = tf.where(~is_simple)
            decoded = self._decode(tf.gather_nd(text, rows))
            strings = self._normalizer.normalize(decoded.points, decoded.row_splits).strings
            return tf.tensor_scatter_nd_update(self._fold(text), rows, strings)

        strings = tf.cond(tf.reduce_all(is_simple), lambda: self._fold(text), normalize_some)
        strings.set_shape(text.shape)
        return self._matcher.tokenize(strings)

    def tokenize_with_offsets(self, text: tf.Tensor) -> TokenOffsets:
        """Returns the token ids of each text, and the offsets of each token in the original text.

        Args:
            text: UTF-8, tf.string (B,).

        Returns:
            TokenOffsets: ids, bytes and code points; five RaggedTensors (B, (tokens)), int32.

        Raises:
            TypeError: `text` is not a string tensor.
            ValueError: `text` is not of rank 1.
        """
        text = checked_text(text)
        is_simple = self._is_simple(text)

        # In a simple row every character is one byte and keeps its offset.
        def as_matched() -> list[tf.Tensor]:
            token_ids, start, end = self._matcher.tokenize_with_offsets(self._fold(text))
            places = [tf.cast(one.values, tf.int32) for one in (start, end)]
            return [token_ids.values, token_ids.row_splits, *places, *places]

        values, row_splits, *places = tf.cond(
            tf.reduce_all(is_simple), as_matched, lambda: self._normalized_offsets(text, is_simple)
        )
        token_ids = tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)
        return TokenOffsets(token_ids, *(token_ids.with_values(one) for one in places))

    def _normalized_offsets(self, text: tf.Tensor, is_simple: tf.Tensor) -> list[tf.Tensor]:
        """Returns ids, row splits and offsets where some texts are not simple."""
        rows = tf.where(~is_simple)
        decoded = self._decode(tf.gather_nd(text, rows))
        normalized = self._normalizer.normalize(decoded.points, decoded.row_splits)
        strings = tf.tensor_scatter_nd_update(self._fold(text), rows, normalized.strings)
        strings.set_shape(text.shape)
        token_ids, start, end = self._matcher.tokenize_with_offsets(strings)
        token_row = row_ids(token_ids)
        tokens = tf.where(~tf.gather(is_simple, token_row))
        normalized_row = tf.cumsum(tf.cast(~is_simple, tf.int64)) - 1
        places = original_offsets(
            tf.gather(normalized_row, tf.gather_nd(token_row, tokens)),
            tf.cast(tf.gather_nd(start.values, tokens), tf.int64),
            tf.cast(tf.gather_nd(end.values, tokens), tf.int64),
            normalized,
            decoded,
        )
        same = (start.values, end.values, start.values, end.values)
        merged = [
            tf.tensor_scatter_nd_update(tf.cast(old, tf.int32), tokens, tf.cast(new, tf.int32))
            for old, new in zip(same, places, strict=True)
        ]
        return [token_ids.values, token_ids.row_splits, *merged]

    def tokens(self, text: str) -> list[str]:
        """Returns the tokens of `text`, a single str, in readable form."""
        ids = self.tokenize(tf.constant([text])).values
        return [self.vocabulary.tokens[number] for number in ids.numpy().tolist()]

    def files(self) -> dict[str, bytes]:
        """Returns the vocabulary file by its name, `vocab.txt`."""
        return {"vocab.txt": "".join(f"{token}\n" for token in self.vocabulary.tokens).encode()}

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments; the vocabulary as its list of tokens, not a file."""
        return {
            "vocabulary": list(self.vocabulary.tokens),
            "lowercase": self.lowercase,
            "special_tokens_in_text": self.special_tokens_in_text,
            "strip_accents": self.strip_accents,
            "handle_cjk": self.handle_cjk,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "WordPiece":
        """Makes the tokenizer of a configuration from `get_config`."""
        return cls(**{**config, "vocabulary": Vocabulary(config["vocabulary"])})

    def _fold(self, text: tf.Tensor) -> tf.Tensor:
        return tf.strings.lower(text) if self.lowercase else text

    def _is_simple(self, text: tf.Tensor) -> tf.Tensor:
        """Returns which rows need no normalizer, bool (B,)."""
        is_simple = tf.strings.regex_full_match(text, _SIMPLE_ROW)
        if self.special_tokens_in_text:
            names = "|".join(map(re.escape, special_markers(self.vocabulary)))
            is_simple &= ~tf.strings.regex_full_match(text, f"(?s).*(?:{names}).*")
        return is_simple

    def _decode(self, text: tf.Tensor) -> DecodedText:
        """Decodes rows to code points; special tokens become as many control characters.

        Control characters are dropped anywhere in a text, so a user's own may be overwritten.
        """
        if self.special_tokens_in_text:
            text = tf.strings.regex_replace(text, r"[\x01-\x08\x0b\x0c\x0e-\x1f]", SPECIAL_FILLER)
            for token, marker in special_markers(self.vocabulary).items():
                text = tf.strings.regex_replace(text, re.escape(token), marker)
        return decode(text)


@functools.lru_cache(maxsize=8)
def _graph_parts(
    vocabulary: Vocabulary, rules: NormalizationRules, special_tokens_in_text: bool
) -> tuple[Normalizer, tf_text.FastWordpieceTokenizer]:
    """Returns the normalizer and the matcher of a vocabulary, which equal tokenizers share.

    Nothing changes them, and they take a sixth of a second to make.
    """
    table = build_table(vocabulary, rules, special_tokens_in_text)
    # An eager constant is captured, not copied, by each graph.
    with tf.init_scope(), tf.device("CPU:0"):
        matcher = tf_text.FastWordpieceTokenizer(
            table.model_tokens,
            token_out_type=tf.int32,
            unknown_token=table.unknown_token,
            max_bytes_per_word=MAX_CHARACTERS_PER_WORD * _LONGEST_CHARACTER,
        )
    return Normalizer(table), matcher
