"""Sentences of given words; tagging of the tokens of texts of any length, and entities.

Shapes: B texts, C tags, U the most words of a text, k the most entities of a text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from kbert.data.batches.mixtures import Columns
from kbert.data.batches.windowed_examples import WindowedExamples
from kbert.pipelines.text_inputs import as_column, read_columns
from kbert.pipelines.window_batching import WindowBatching
from kbert.text.graph_functions import map_in_chunks, places_in_chunks, row_ids
from kbert.text.sequences.entities import Entities, best_path, find_entities, tag_rules
from kbert.text.sequences.packing import Windows, WindowTokens
from kbert.text.sequences.spans import SpanText, cut_spans
from kbert.text.sequences.word_boundaries import Units
from kbert.text.tokenizer import TokenOffsets

_SMALLEST = 1e-30
# Words of one chunk of decoding: a batch of usual texts is one chunk.
_CHUNK_WORDS = 1 << 16


@dataclass(frozen=True)
class WordInputs:
    """Sentences, n lists of words without blanks."""

    words: list[list[str]]

    def __len__(self) -> int:
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
    """Reads sentences of words in any of their forms; returns None for something else.

    These are a list of lists of str, a column of such, a table with a column "words" or "tokens",
    and an object with `words`, such as `TaggedSentences`.

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
            raise ValueError(f"`x[{number}]` must be a list of words. Received: {sentence!r:.80}")
        for word in sentence:
            if not isinstance(word, str) or not word or " " in word:
                raise ValueError(
                    f"`x[{number}]` must hold words without blanks. Received: {word!r:.80}"
                )
    return WordInputs([list(sentence) for sentence in words])


class TaggedTexts(NamedTuple):
    """Tags and entities of texts.

    Attributes:
        path: int32 (B, U), the tag of each word.
        texts: each entity cut from its text, (B, k).
        score: float32 (B, k), the score of each entity.
        kind: int32 (B, k), the id of its type.
        count: int32 (B,), the entities of each text.
    """

    path: tf.Tensor
    texts: SpanText
    score: tf.Tensor
    kind: tf.Tensor
    count: tf.Tensor


def owned_targets(
    windows: WindowedExamples, unknown: np.ndarray, of_row: Callable[[int], np.ndarray]
) -> np.ndarray:
    """Fills in the target of each token of windows, in the one window that owns it.

    `unknown` has a target for each token of `windows.packed`, which the tokens keep that a window
    does not own. `of_row` returns the targets of all tokens of a row's context.
    """
    targets = unknown.copy()
    begins = windows.packed.starts + windows.begin - windows.first
    row_of, found = -1, unknown[:0]
    for window, row in enumerate(windows.row.tolist()):
        if row != row_of:
            row_of, found = row, of_row(row)
        owned = slice(windows.owned_from[window], windows.owned_to[window])
        begin = begins[window]
        targets[begin + owned.start : begin + owned.stop] = found[owned]
    return targets


class TokenTagging(WindowBatching):
    """Windows of texts for a model that gives each token one of C tags, and the tags' decoding.

    The decoded tags of a text are always a valid sequence. The model has `tag_names`, the C tags,
    BIO or IOBES.
    """

    def as_columns(self, packed: WindowedExamples, targets: Any) -> Columns:
        """Returns windows, with a target a token, as arrays."""
        return Columns(packed.packed, token_labels=targets)

    def token_probabilities(
        self, offsets: TokenOffsets, questions: tf.RaggedTensor | None
    ) -> tf.Tensor:
        """Returns the tags' probabilities, float32 (tokens of all contexts, C); graph code.

        `questions` are ragged ids (B, (tokens)), or None.
        """
        starts = tf.cast(offsets.token_ids.row_starts(), tf.int32)

        def read(logits: Any, tokens: WindowTokens, windows: Windows) -> Sequence[tf.Tensor]:
            place = tf.gather(starts, windows.row)[:, tf.newaxis] + tokens.position
            owned = tf.where(tokens.owned)
            probabilities = tf.cast(tf.nn.softmax(logits, axis=-1), tf.float32)
            return tf.gather_nd(place, owned)[:, tf.newaxis], tf.gather_nd(probabilities, owned)

        outputs = [
            tf.TensorSpec((None, 1), tf.int32),
            tf.TensorSpec((None, self.model.num_labels), tf.float32),
        ]
        place, probabilities = self.over_windows(offsets, questions, read, outputs)
        shape = [tf.size(offsets.token_ids.values), self.model.num_labels]
        return tf.scatter_nd(place, probabilities, shape)

    def tag_words(
        self,
        text: tf.Tensor,
        offsets: TokenOffsets,
        units: Units,
        probabilities: tf.Tensor,
        bias: Any = None,
    ) -> TaggedTexts:
        """Decodes the tags of words, `units`, of texts (B,), as graph code.

        A word's tag is decided at its first token. `probabilities` are float32 (tokens of all rows,
        C), and `bias`, float32 (C,), is added to their logarithms.
        """
        starts = tf.cast(offsets.token_ids.row_starts(), tf.int32)
        row = row_ids(units.first)
        first = units.first.with_values(
            tf.gather(probabilities, tf.gather(starts, row) + units.first.values)
        )
        path, found = self._decoded(first, 0.0 if bias is None else tf.convert_to_tensor(bias))
        count = tf.cast(found.first.row_lengths(), tf.int32)
        filled = tf.sequence_mask(count)

        def tokens(words: tf.RaggedTensor, ends: tf.RaggedTensor) -> tf.Tensor:
            places = tf.cast(ends.row_starts(), tf.int32)
            flat = tf.gather(places, row_ids(words)) + words.values
            return words.with_values(tf.gather(ends.values, flat)).to_tensor(0)

        texts = cut_spans(
            text, offsets, tokens(found.first, units.first), tokens(found.last, units.last), filled
        )
        score, kind = found.score.to_tensor(0.0), found.kind.to_tensor(0)
        return TaggedTexts(path.to_tensor(0), texts, score, kind, count)

    def _decoded(
        self, probabilities: tf.RaggedTensor, bias: Any
    ) -> tuple[tf.RaggedTensor, Entities]:
        """Returns the tags of words, int32 (B, (words)), and the entities that they form.

        Rows of similar length are decoded together: one long text would make a batch of short ones
        as large as if all were long.
        """
        lengths = tf.cast(probabilities.row_lengths(), tf.int32)

        def decode(chosen: tf.Tensor) -> Sequence[tf.Tensor]:
            some = tf.gather(lengths, chosen)
            part = tf.gather(probabilities, chosen)
            dense = part.to_tensor(0.0, shape=(None, None, self.model.num_labels))
            rules = tag_rules(self.model.tag_names, getattr(self.model, "strict_tags", True))
            path = best_path(tf.math.log(dense + _SMALLEST) + bias, some, rules)
            found = find_entities(path, dense, some, self.model.tag_names)
            words = tf.gather_nd(path, tf.where(tf.sequence_mask(some, tf.shape(path)[1])))
            return words, found.first.row_lengths(), *(column.values for column in found)

        types = (tf.int32, tf.int64, tf.int32, tf.int32, tf.int32, tf.float32)
        outputs = [tf.TensorSpec((None,), dtype) for dtype in types]
        sizes = tf.maximum(lengths, 1)
        words, counts, *columns = map_in_chunks(decode, sizes, _CHUNK_WORDS, outputs, twice=True)
        places = places_in_chunks(sizes)

        def in_order(columns: Sequence[tf.Tensor], counts: tf.Tensor) -> list[tf.RaggedTensor]:
            numbers = tf.range(tf.size(columns[0]))
            each = tf.RaggedTensor.from_row_lengths(numbers, counts, validate=False)
            rows = tf.gather(each, places)
            return [rows.with_values(tf.gather(column, rows.values)) for column in columns]

        # The lengths of the rows in the order of the chunks.
        by_chunk = tf.gather(lengths, tf.math.invert_permutation(places))
        (path,) = in_order([words], tf.cast(by_chunk, tf.int64))
        return path, Entities(*in_order(columns, counts))
