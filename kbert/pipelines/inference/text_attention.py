"""What the tokens of one text attend to, for people to look at."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.text.sequences.packing import pack


def attention_of_text(model: Any, texts: Sequence[str]) -> tuple[list[str], list[np.ndarray]]:
    """The attention probabilities of a model's encoder on one text, or one pair.

    Args:
        model: a model on raw texts, or a translator, of which the encoder's attention is told.
        texts: one text or two, for a translator one; what is longer than the model takes is cut.

    Returns:
        The T tokens, special ones included, and for each layer the probabilities (N, T, T).

    Raises:
        ValueError: two texts for a translator.
    """
    if hasattr(model, "translate"):
        return _of_source(model, texts)
    vocabulary = model.tokenizer.vocabulary
    segments = [model.tokenizer.tokenize(tf.constant([text])) for text in texts]
    packed = pack(segments, vocabulary, model.max_sequence_length)
    inputs = {"token_ids": packed.token_ids, "segment_ids": packed.segment_ids}
    scores = model.encoder.attention_scores(inputs)
    tokens = [vocabulary.tokens[i] for i in packed.token_ids[0].numpy().tolist()]
    return tokens, [tf.cast(layer[0], tf.float32).numpy() for layer in scores]


def _of_source(model: Any, texts: Sequence[str]) -> tuple[list[str], list[np.ndarray]]:
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
