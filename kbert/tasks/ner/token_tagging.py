"""Tagging of tokens: a distribution for each token of a text of any length, and entities.

Shapes: B texts, C tags, U the most words of a text, k the most entities of a text.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from kbert.data.batches.dataset import batched_dataset
from kbert.data.batches.windowed_examples import WindowedExamples
from kbert.pipelines.base.window_batching import WindowBatching
from kbert.text.graph_functions import map_in_chunks, places_in_chunks
from kbert.text.sequences.entities import Entities, TagRules, best_path, find_entities, tag_rules
from kbert.text.sequences.packing import Windows, WindowTokens
from kbert.text.sequences.spans import SpanText, cut_spans
from kbert.text.sequences.word_boundaries import Units
from kbert.text.wordpiece.normalizer import TokenOffsets

_SMALLEST = 1e-30
# Words of one chunk of decoding: a batch of usual texts is one chunk.
_CHUNK_WORDS = 1 << 16


class TaggedTexts(NamedTuple):
    """Tags and entities of texts.

    Attributes:
        path: int32 (B, U), the tag of each word.
        entities: ragged (B, (entities)).
        texts: each entity cut from its text, (B, k).
        score: float32 (B, k), the score of each entity.
        kind: int32 (B, k), the id of its type.
        count: int32 (B,), the entities of each text.
    """

    path: tf.Tensor
    entities: Entities
    texts: SpanText
    score: tf.Tensor
    kind: tf.Tensor
    count: tf.Tensor


class TokenTagging(WindowBatching):
    """Windows of texts for a model that gives each token one of C tags, and the tags' decoding.

    The decoded tags of a text are always a valid sequence. The model has `tag_names`, the C tags,
    BIO or IOBES.
    """

    def dataset(self, packed: WindowedExamples, targets: Any = None, **kwargs: Any) -> Any:
        """Returns length-bucketed windows, with a target a token; see `TaskModel.dataset`."""
        return batched_dataset(packed.packed, token_labels=targets, **kwargs)

    def token_probabilities(
        self, offsets: TokenOffsets, questions: tf.RaggedTensor | None
    ) -> tf.Tensor:
        """Returns the probabilities of the tags of all tokens, as graph code.

        Args:
            offsets: the tokens of the contexts (B, (tokens)).
            questions: ragged ids (B, (tokens)), or None.

        Returns:
            float32 (tokens of all rows, C).
        """
        starts = tf.cast(offsets.token_ids.row_starts(), tf.int32)

        def read(logits: Any, tokens: WindowTokens, windows: Windows) -> Sequence[tf.Tensor]:
            place = tf.gather(starts, windows.row)[:, tf.newaxis] + tokens.position
            owned = tokens.owned
            return (
                tf.boolean_mask(place, owned)[:, tf.newaxis],
                tf.boolean_mask(tf.cast(tf.nn.softmax(logits, axis=-1), tf.float32), owned),
            )

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
        """Decodes the tags of words, as graph code.

        A word's tag is decided at its first token.

        Args:
            text: string (B,).
            offsets: the tokens of `text`.
            units: the words of `text`.
            probabilities: float32 (tokens of all rows, C).
            bias: float32 (C,), added to the log probability of each tag; None for no bias.
        """
        starts = tf.cast(offsets.token_ids.row_starts(), tf.int32)
        row = units.first.value_rowids()
        first = units.first.with_values(
            tf.gather(probabilities, tf.gather(starts, row) + units.first.values)
        )
        path, found = self._decoded(first, 0.0 if bias is None else tf.convert_to_tensor(bias))
        count = tf.cast(found.first.row_lengths(), tf.int32)
        filled = tf.sequence_mask(count)

        def tokens(words: tf.RaggedTensor, ends: tf.RaggedTensor) -> tf.Tensor:
            places = tf.cast(ends.row_starts(), tf.int32)
            flat = tf.gather(places, words.value_rowids()) + words.values
            return words.with_values(tf.gather(ends.values, flat)).to_tensor(0)

        texts = cut_spans(
            text,
            offsets,
            tokens(found.first, units.first),
            tokens(found.last, units.last),
            filled,
        )
        score, kind = found.score.to_tensor(0.0), found.kind.to_tensor(0)
        return TaggedTexts(path.to_tensor(0), found, texts, score, kind, count)

    def _decoded(
        self, probabilities: tf.RaggedTensor, bias: Any
    ) -> tuple[tf.RaggedTensor, Entities]:
        """Returns the tags of words, int32 (B, (words)), and the entities that they form.

        Rows of similar length are decoded together: one long text would make a batch of short ones
        as large as if all were long.

        Args:
            probabilities: float32 (B, (words), C).
            bias: float32 (C,), added to the logarithms; or 0.
        """
        lengths = tf.cast(probabilities.row_lengths(), tf.int32)

        def decode(chosen: tf.Tensor) -> Sequence[tf.Tensor]:
            some = tf.gather(lengths, chosen)
            part = tf.gather(probabilities, chosen)
            dense = part.to_tensor(0.0, shape=(None, None, self.model.num_labels))
            path = best_path(tf.math.log(dense + _SMALLEST) + bias, some, self.rules)
            found = find_entities(path, dense, some, self.model.tag_names)
            words = tf.boolean_mask(path, tf.sequence_mask(some, tf.shape(path)[1]))
            return words, found.first.row_lengths(), *(column.values for column in found)

        types = (tf.int32, tf.int64, tf.int32, tf.int32, tf.int32, tf.float32)
        outputs = [tf.TensorSpec((None,), dtype) for dtype in types]
        sizes = tf.maximum(lengths, 1)
        words, counts, *columns = map_in_chunks(decode, sizes, _CHUNK_WORDS, outputs)
        places = places_in_chunks(sizes)

        def in_order(values: tf.Tensor, row_lengths: tf.Tensor) -> tf.RaggedTensor:
            return tf.gather(tf.RaggedTensor.from_row_lengths(values, row_lengths), places)

        # The lengths of the rows in the order of the chunks.
        by_chunk = tf.gather(lengths, tf.math.invert_permutation(places))
        path = in_order(words, tf.cast(by_chunk, tf.int64))
        return path, Entities(*(in_order(column, counts) for column in columns))

    @property
    def rules(self) -> TagRules:
        """The rules of which tags may follow each other."""
        return tag_rules(self.model.tag_names)
