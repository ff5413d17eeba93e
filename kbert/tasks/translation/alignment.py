"""Alignment of the pieces of a translation with those of its source, by attention.

Shapes: B rows, k rows of one chunk, S source pieces, T target pieces, N heads.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from kbert.decoding.beam_search import Hypotheses
from kbert.models.transformer import Transformer
from kbert.pipelines.inference.captured_weights import captured_weights
from kbert.tasks.translation.parallel_text_model import ParallelTextModel
from kbert.text.sequences.chunks import map_in_chunks, places_in_chunks

# Positions of the source, rows times longest row, of one chunk.
_CHUNK_CELLS = 2048
# Chunks that are translated in parallel.
_CHUNKS_AT_ONCE = 2


class TranslationAlignment(ParallelTextModel):
    """Adds `align` to a translation model on raw texts.

    An alignment is the attention of one layer of the decoder to the source, the mean of its heads,
    at the step that outputs the piece. By default the layer is the last one, as in fairseq, Marian
    and CTranslate2; of these, Marian and CTranslate2 take only its first head by default.

    Source: Bahdanau et al. 2015, section 5.2.1, for the idea; Garg et al. 2019, "Jointly Learning
    to Align and Translate with Transformer Models", for layers and heads.

    Args:
        transformer: a `Transformer` or a `BertFusedTransformer`; of the latter the attention to
            its encoder is the alignment, not the one to BERT.
        label_smoothing: label smoothing of the loss.
        alignment_layer: index of the decoder's layer, from 0, or from -1 back from the last one;
            None for the mean of all layers.

    Raises:
        ValueError: there is no such layer.
    """

    # Implemented by `kbert.tasks.translation.model.Translator`.
    source_inputs: Callable[[Any], tuple[dict[str, Any], Any, Any]]
    bert_inputs: Callable[[Any], dict[str, Any]]
    search: Callable[[dict[str, Any], Any], Hypotheses]

    def __init__(
        self,
        transformer: Transformer,
        label_smoothing: float = 0.1,
        alignment_layer: int | None = -1,
        **kwargs: Any,
    ) -> None:
        super().__init__(transformer, label_smoothing, **kwargs)
        self.alignment_layer = alignment_layer
        count = transformer.num_decoder_layers
        if alignment_layer is not None and not -count <= alignment_layer < count:
            raise ValueError(
                f"`alignment_layer` must be None or in [{-count}, {count - 1}]. "
                f"Received: alignment_layer={alignment_layer}"
            )

    def align(self, text: Any) -> dict[str, Any]:
        """Translates raw strings (B,), and aligns the translations with them, as graph code.

        The best translation is found as in `translate`, and then passed through the decoder once
        more. No row depends on the others. The output has B T S numbers: one long text among many
        short ones makes it large.

        Args:
            text: string (B,).

        Returns:
            `translation` string (B,), `score` float32 (B,) and `truncated` bool (B,), as
            `translate` returns. `source_tokens` string (B, S) and `target_tokens` string (B, T),
            the pieces of both with the end tokens, padded with ""; `source_lengths` and
            `target_lengths` int32 (B,), how many of them are real. `alignment` float32 (B, T, S):
            the row of each real target piece sums to 1 over the real pieces of the source; the rest
            is 0. An empty text has no target pieces, and only the end token as source.
        """
        inputs, lengths, truncated = self.source_inputs(text)
        beside, sizes = self.inputs_beside(text, lengths)
        width = tf.shape(inputs["source_token_ids"])[1]

        def run(chosen: tf.Tensor) -> tuple[tf.Tensor, ...]:
            some, counts = self._chosen(inputs, beside, lengths, chosen)
            found, layers = self.translated_scores(some, counts)
            ids, empty = found.token_ids[:, 0], counts == 1
            pieces = tf.where(empty, 0, found.lengths[:, 0])
            real = tf.sequence_mask(pieces, tf.shape(ids)[1])
            weights = self._mean(layers)
            margin = width - tf.shape(weights)[2]
            weights = tf.pad(weights[real], [[0, 0], [0, margin]])
            texts = self.target_subwords.detokenize(ids, pieces)
            scores = tf.where(empty, 0.0, found.scores[:, 0])
            return texts, scores, pieces, ids[real], tf.reshape(weights, [-1])

        types = (tf.string, tf.float32, tf.int32, tf.int32, tf.float32)
        specs = [tf.TensorSpec((None,), dtype) for dtype in types]
        texts, scores, pieces, ids, weights = self._in_chunks(run, sizes, specs)
        back = places_in_chunks(sizes)
        weights = tf.reshape(weights, (tf.size(ids), width))
        ids, weights = (
            tf.gather(tf.RaggedTensor.from_row_lengths(v, pieces), back) for v in (ids, weights)
        )
        return {
            "translation": tf.gather(texts, back),
            "score": tf.gather(scores, back),
            "source_tokens": self._source_tokens(inputs),
            "target_tokens": _pieces(self.target_subwords, ids).to_tensor(""),
            "alignment": weights.to_tensor(),
            "source_lengths": lengths,
            "target_lengths": tf.gather(pieces, back),
            "truncated": truncated,
        }

    def translated_scores(
        self, inputs: dict[str, Any], lengths: Any
    ) -> tuple[Hypotheses, list[Any]]:
        """Translates tokenized sources, and returns the decoder's attention too; graph code.

        Args:
            inputs: the inputs of `Transformer.encode`.
            lengths: int32 (k,), pieces of each source, the end token included.

        Returns:
            The hypotheses of `search`; and for each layer of the decoder the attention (k, N, T, S)
            of the steps that output the pieces of the best translations.
        """
        if self.bert_tokenizer is not None:
            inputs = {**inputs, "bert_states": self.transformer.bert_states(inputs)}
        found = self.search(inputs, lengths)
        best = found.token_ids[:, 0]
        start = tf.fill((tf.shape(best)[0], 1), self.target_subwords.start_id)
        known = tf.concat([start, best[:, :-1]], axis=1)
        return found, self.transformer.memory_scores(known, self.transformer.encode(inputs))

    def _in_chunks(
        self, run: Callable[[Any], Sequence[tf.Tensor]], sizes: Any, specs: list[tf.TensorSpec]
    ) -> list[tf.Tensor]:
        """Runs `map_in_chunks` for a search."""
        with captured_weights():
            return map_in_chunks(run, sizes, _CHUNK_CELLS, specs, _CHUNKS_AT_ONCE)

    def inputs_beside(self, text: Any, lengths: Any) -> tuple[dict[str, Any], tf.Tensor]:
        """Returns the inputs of a fused model's BERT, and the size of each row; graph code.

        Args:
            text: raw strings (B,).
            lengths: int32 (B,), pieces of each source, the end token included.

        Returns:
            Inputs, none where there is no BERT; and int32 (B,), the longer of both tokenizations: a
            text of few pieces can have many tokens for BERT.
        """
        if self.bert_tokenizer is None:
            return {}, lengths
        beside = self.bert_inputs(text)
        return beside, tf.maximum(lengths, _counts(beside["bert_padding_mask"]))

    def _chosen(
        self, inputs: dict[str, Any], beside: dict[str, Any], lengths: Any, chosen: tf.Tensor
    ) -> tuple[dict[str, Any], tf.Tensor]:
        """Returns some rows of the inputs, as wide as the longest, and their lengths."""
        counts = tf.gather(lengths, chosen)
        longest = tf.reduce_max(counts)
        some = {key: tf.gather(value[:, :longest], chosen) for key, value in inputs.items()}
        if beside:
            of_bert = tf.gather(_counts(beside["bert_padding_mask"]), chosen)
            longest = tf.reduce_max(of_bert)
            some |= {k: tf.gather(value[:, :longest], chosen) for k, value in beside.items()}
        return some, counts

    def _mean(self, layers: list[Any]) -> tf.Tensor:
        """Returns the mean over heads and, if no layer is chosen, layers: float32 (k, T, S)."""
        if self.alignment_layer is not None:
            layers = [layers[self.alignment_layer]]
        heads = [tf.reduce_mean(tf.cast(layer, tf.float32), axis=1) for layer in layers]
        total = tf.add_n(heads)
        # Probabilities of few bits do not sum to 1 exactly.
        return total / tf.reduce_sum(total, axis=-1, keepdims=True)

    def _source_tokens(self, inputs: dict[str, Any]) -> tf.Tensor:
        pieces = _pieces(self.source_subwords, inputs["source_token_ids"])
        return tf.where(inputs["source_padding_mask"], pieces, "")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "alignment_layer": self.alignment_layer}


def _counts(mask: Any) -> tf.Tensor:
    """Returns the number of real tokens of each row, int32 (B,)."""
    return tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)


def _pieces(subwords: Any, ids: Any) -> Any:
    """Returns the piece of each id."""
    return tf.gather(tf.constant(subwords.pieces), ids)
