"""Attention of the tokens of one text, for display."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.text.sequences.packing import pack


def attention_of_text(model: Any, texts: Sequence[str]) -> tuple[list[str], list[np.ndarray]]:
    """Returns tokens and attention of a model on raw texts, see `Task.attention`."""
    vocabulary = model.tokenizer.vocabulary
    segments = [model.tokenizer.tokenize(tf.constant([text])) for text in texts]
    packed = pack(segments, vocabulary, model.max_sequence_length)
    inputs = {"token_ids": packed.token_ids, "segment_ids": packed.segment_ids}
    scores = model.encoder.attention_scores(inputs)
    tokens = [vocabulary.tokens[i] for i in packed.token_ids[0].numpy().tolist()]
    return tokens, [tf.cast(layer[0], tf.float32).numpy() for layer in scores]
