"""Alignment of the pieces of a translation with those of its source, by attention.

An alignment is the attention of one layer of the decoder to the source, the mean of its heads, at
the step that outputs the piece; of a fused model the attention to its encoder, not the one to BERT.
The layer is the translator's `alignment_layer`: an index from 0, or from -1 back from the last one;
None for the mean of all layers. By default it is the last one, as in fairseq, Marian and
CTranslate2; of these, Marian and CTranslate2 take only its first head by default.

Source: Bahdanau et al. 2015, section 5.2.1, for the idea; Garg et al. 2019, "Jointly Learning to
Align and Translate with Transformer Models", for layers and heads.

Shapes: B rows, k rows of one chunk, S source pieces, T target pieces, N heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.decoding.search import Hypotheses
from kbert.tasks.translation.batching import SourceChunks
from kbert.text.piece_words import piece_words


def check_layer(translator: Any) -> None:
    """Raises a ValueError if there is no such layer as the translator's `alignment_layer`."""
    layer, count = translator.alignment_layer, translator.transformer.num_decoder_layers
    # Without attention there is none, and what would align says so.
    if count and layer is not None and not -count <= layer < count:
        raise ValueError(
            f"`alignment_layer` must be None or in [{-count}, {count - 1}]. "
            f"Received: alignment_layer={layer}"
        )


def check_attends(model: Any) -> None:
    """Raises a ValueError if a translator's model has no attention to the source."""
    if not model.transformer.num_decoder_layers:
        raise ValueError(
            "a translation is aligned by the attention to its source. Received: a "
            f"{type(model.transformer).__name__}, which has none"
        )


def aligned_translations(model: Any, text: Any) -> dict[str, Any]:
    """Translates raw strings (B,), and aligns both; see `Translator.align`."""
    check_attends(model)
    sources, target = SourceChunks(model, text), model.target_subwords
    width = tf.shape(sources.inputs["source_token_ids"])[1]

    def run(chosen: tf.Tensor) -> tuple[tf.Tensor, ...]:
        some, counts = sources.take(chosen)
        found, layers = translated_scores(model, some, counts)
        ids, empty = found.token_ids[:, 0], counts == 1
        pieces = tf.where(empty, 0, found.lengths[:, 0])
        real = tf.sequence_mask(pieces, tf.shape(ids)[1])
        weights = _mean(model, layers)
        margin = width - tf.shape(weights)[2]
        weights = tf.pad(weights[real], [[0, 0], [0, margin]])
        texts = target.detokenize(ids, pieces)
        scores = tf.where(empty, 0.0, found.scores[:, 0])
        return texts, scores, pieces, ids[real], tf.reshape(weights, [-1])

    types = (tf.string, tf.float32, tf.int32, tf.int32, tf.float32)
    specs = [tf.TensorSpec((None,), dtype) for dtype in types]
    texts, scores, pieces, ids, weights = sources.map(run, specs)
    back = sources.places
    source_pieces = _pieces(model.source_subwords, sources.inputs["source_token_ids"])
    weights = tf.reshape(weights, (tf.size(ids), width))
    ids, weights = (
        tf.gather(tf.RaggedTensor.from_row_lengths(v, pieces), back) for v in (ids, weights)
    )
    return {
        "translation": tf.gather(texts, back),
        "score": tf.gather(scores, back),
        "source_tokens": tf.where(sources.inputs["source_padding_mask"], source_pieces, ""),
        "target_tokens": _pieces(target, ids).to_tensor(""),
        "alignment": weights.to_tensor(),
        "source_lengths": sources.lengths,
        "target_lengths": tf.gather(pieces, back),
        "truncated": sources.truncated,
    }


def translated_scores(
    model: Any, inputs: dict[str, Any], lengths: Any
) -> tuple[Hypotheses, list[Any]]:
    """Translates tokenized sources, and returns the decoder's attention too; graph code.

    The second result is for each layer of the decoder the attention (k, N, T, S) of the steps
    that output the pieces of the best translations.
    """
    if model.bert_tokenizer is not None:
        inputs = {**inputs, "bert_states": model.transformer.bert_states(inputs)}
    found = model.search(inputs, lengths)
    best = found.token_ids[:, 0]
    start = tf.fill((tf.shape(best)[0], 1), model.target_subwords.start_id)
    known = tf.concat([start, best[:, :-1]], axis=1)
    return found, model.transformer.memory_scores(known, model.transformer.encode(inputs))


def _mean(model: Any, layers: list[Any]) -> tf.Tensor:
    """Returns the mean over heads and, if no layer is chosen, layers: float32 (k, T, S)."""
    if model.alignment_layer is not None:
        layers = [layers[model.alignment_layer]]
    heads = [tf.reduce_mean(tf.cast(layer, tf.float32), axis=1) for layer in layers]
    total = tf.add_n(heads)
    # Probabilities of few bits do not sum to 1 exactly.
    return total / tf.reduce_sum(total, axis=-1, keepdims=True)


def _pieces(subwords: Any, ids: Any) -> Any:
    """Returns the piece of each id."""
    return tf.gather(tf.constant(subwords.pieces), ids)


@dataclass(frozen=True)
class TextAlignment:
    """One translated text: S pieces, or words, of its source, and T of its best translation.

    `layers` has for each layer of the decoder (N, T, S), the attention to the source at the step
    that outputs a piece; `layer` is the index of the translator's alignment layer, from 0, or None
    for the mean of all.
    """

    translation: str
    source: list[str]
    target: list[str]
    layers: list[np.ndarray]
    layer: int | None

    def mean(self, layer: int | None, head: int | None = None) -> np.ndarray:
        """Returns the attention of a layer and head, or the mean of all, (T, S): distributions."""
        layers = self.layers if layer is None else [self.layers[layer]]
        heads = np.mean(layers, axis=0)
        return heads.mean(axis=0) if head is None else heads[head]

    def in_words(self) -> "TextAlignment":
        """Returns the alignment of words instead of pieces.

        The weights of the pieces of a source word are summed; those of a target word are averaged.
        """
        source, target = piece_words(self.source), piece_words(self.target)
        layers = [
            np.stack([target.averaged(source.summed(head)) for head in layer])
            for layer in self.layers
        ]
        return TextAlignment(self.translation, source.words, target.words, layers, self.layer)


def alignment_of_text(model: Any, text: str) -> TextAlignment:
    """Translates one text, truncated as by `align`, and returns the attention of each piece."""
    check_attends(model)
    inputs, lengths = SourceChunks(model, tf.constant([text])).take(tf.constant([0]))
    source = inputs["source_token_ids"][0].numpy().tolist()
    found, layers = translated_scores(model, inputs, lengths)
    count = 0 if len(source) == 1 else int(found.lengths[0, 0])
    target = found.token_ids[0, 0, :count].numpy().tolist()
    said = model.target_subwords.detokenize(tf.constant([target], tf.int32))[0].numpy()
    chosen = model.alignment_layer
    return TextAlignment(
        said.decode(),
        [model.source_subwords.pieces[i] for i in source],
        [model.target_subwords.pieces[i] for i in target],
        [tf.cast(layer[0, :, :count], tf.float32).numpy() for layer in layers],
        None if chosen is None else chosen % len(layers),
    )


def attention_of_source(model: Any, texts: Sequence[str]) -> tuple[list[str], list[np.ndarray]]:
    """Returns pieces and attention of a translator's encoder on one text, see `Task.attention`."""
    if len(texts) != 1:
        raise ValueError(f"`texts` must be one text for a translator. Received: {len(texts)}")
    inputs, _ = SourceChunks(model, tf.constant(texts)).take(tf.constant([0]))
    # A model of another package need not have it.
    found: Any = getattr(model.transformer, "attention_scores", lambda inputs: [])
    ids = inputs["source_token_ids"][0].numpy().tolist()
    tokens = [model.source_subwords.pieces[i] for i in ids]
    return tokens, [tf.cast(layer[0], tf.float32).numpy() for layer in found(inputs)]
