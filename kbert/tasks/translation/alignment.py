"""Alignment of the pieces of a translation with those of its source, by attention.

Shapes: B rows, k rows of one chunk, S source pieces, T target pieces, N heads.
"""

from typing import Any

import tensorflow as tf

from kbert.decoding.search import Hypotheses
from kbert.tasks.translation.source_chunks import SourceChunks


class Alignment:
    """Alignments of a translator's translations; the translator holds it.

    An alignment is the attention of one layer of the decoder to the source, the mean of its heads,
    at the step that outputs the piece; of a fused model the attention to its encoder, not the one
    to BERT. By default the layer is the last one, as in fairseq, Marian and CTranslate2; of these,
    Marian and CTranslate2 take only its first head by default.

    Source: Bahdanau et al. 2015, section 5.2.1, for the idea; Garg et al. 2019, "Jointly Learning
    to Align and Translate with Transformer Models", for layers and heads.

    Args:
        translator: a `Translator`, whose `alignment_layer` is the index of the decoder's layer,
            from 0, or from -1 back from the last one; None for the mean of all layers.

    Raises:
        ValueError: there is no such layer.
    """

    def __init__(self, translator: Any) -> None:
        self.model = translator
        layer, count = translator.alignment_layer, translator.transformer.num_decoder_layers
        if layer is not None and not -count <= layer < count:
            raise ValueError(
                f"`alignment_layer` must be None or in [{-count}, {count - 1}]. "
                f"Received: alignment_layer={layer}"
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
        sources, target = SourceChunks(self.model, text), self.model.target_subwords
        width = tf.shape(sources.inputs["source_token_ids"])[1]

        def run(chosen: tf.Tensor) -> tuple[tf.Tensor, ...]:
            some, counts = sources.take(chosen)
            found, layers = self.translated_scores(some, counts)
            ids, empty = found.token_ids[:, 0], counts == 1
            pieces = tf.where(empty, 0, found.lengths[:, 0])
            real = tf.sequence_mask(pieces, tf.shape(ids)[1])
            weights = self._mean(layers)
            margin = width - tf.shape(weights)[2]
            weights = tf.pad(weights[real], [[0, 0], [0, margin]])
            texts = target.detokenize(ids, pieces)
            scores = tf.where(empty, 0.0, found.scores[:, 0])
            return texts, scores, pieces, ids[real], tf.reshape(weights, [-1])

        types = (tf.string, tf.float32, tf.int32, tf.int32, tf.float32)
        specs = [tf.TensorSpec((None,), dtype) for dtype in types]
        texts, scores, pieces, ids, weights = sources.map(run, specs)
        back = sources.places
        weights = tf.reshape(weights, (tf.size(ids), width))
        ids, weights = (
            tf.gather(tf.RaggedTensor.from_row_lengths(v, pieces), back) for v in (ids, weights)
        )
        return {
            "translation": tf.gather(texts, back),
            "score": tf.gather(scores, back),
            "source_tokens": self._source_tokens(sources.inputs),
            "target_tokens": _pieces(target, ids).to_tensor(""),
            "alignment": weights.to_tensor(),
            "source_lengths": sources.lengths,
            "target_lengths": tf.gather(pieces, back),
            "truncated": sources.truncated,
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
        model = self.model
        if model.bert_tokenizer is not None:
            inputs = {**inputs, "bert_states": model.transformer.bert_states(inputs)}
        found = model.search(inputs, lengths)
        best = found.token_ids[:, 0]
        start = tf.fill((tf.shape(best)[0], 1), model.target_subwords.start_id)
        known = tf.concat([start, best[:, :-1]], axis=1)
        return found, model.transformer.memory_scores(known, model.transformer.encode(inputs))

    def _mean(self, layers: list[Any]) -> tf.Tensor:
        """Returns the mean over heads and, if no layer is chosen, layers: float32 (k, T, S)."""
        if self.model.alignment_layer is not None:
            layers = [layers[self.model.alignment_layer]]
        heads = [tf.reduce_mean(tf.cast(layer, tf.float32), axis=1) for layer in layers]
        total = tf.add_n(heads)
        # Probabilities of few bits do not sum to 1 exactly.
        return total / tf.reduce_sum(total, axis=-1, keepdims=True)

    def _source_tokens(self, inputs: dict[str, Any]) -> tf.Tensor:
        pieces = _pieces(self.model.source_subwords, inputs["source_token_ids"])
        return tf.where(inputs["source_padding_mask"], pieces, "")


def _pieces(subwords: Any, ids: Any) -> Any:
    """Returns the piece of each id."""
    return tf.gather(tf.constant(subwords.pieces), ids)
