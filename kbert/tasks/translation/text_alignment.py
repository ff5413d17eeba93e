"""Attention of a translator on one text, for display.

Shapes: T target pieces, S source pieces, N heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.text.piece_words import piece_words


@dataclass(frozen=True)
class TextAlignment:
    """One translated text.

    Attributes:
        translation: the best one.
        source: S pieces, or words.
        target: T pieces, or words.
        layers: for each layer of the decoder (N, T, S): the attention to the source at the step
            that outputs a piece.
        layer: index of the layer of the translator's alignment, from 0; None for their mean.
    """

    translation: str
    source: list[str]
    target: list[str]
    layers: list[np.ndarray]
    layer: int | None

    def mean(self, layer: int | None, head: int | None = None) -> np.ndarray:
        """Returns the attention of a layer and head, (T, S), each row a distribution.

        Args:
            layer: index of the layer, from 0; None for the mean of all.
            head: index of the head, from 0; None for the mean of all.
        """
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
    batch = tf.constant([text])
    inputs, lengths, _ = model.source_inputs(batch)
    if model.bert_tokenizer is not None:
        inputs |= model.bert_inputs(batch)
    source = inputs["source_token_ids"][0].numpy().tolist()
    found, layers = model.alignment.translated_scores(inputs, lengths)
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
    batch = tf.constant(texts)
    inputs, _, _ = model.source_inputs(batch)
    if model.bert_tokenizer is not None:
        inputs |= model.bert_inputs(batch)
    scores = model.transformer.attention_scores(inputs)
    ids = inputs["source_token_ids"][0].numpy().tolist()
    tokens = [model.source_subwords.pieces[i] for i in ids]
    return tokens, [tf.cast(layer[0], tf.float32).numpy() for layer in scores]
