"""The least that has texts, tokens and weights: exported within a second."""

from types import SimpleNamespace
from typing import Any

import tensorflow as tf


class Meter:
    """Measures texts; of tokens it gives the sum of the real ones, weighted."""

    name = "meter"
    labels = ["short", "long"]
    max_sequence_length = 16
    pair = False

    def __init__(self) -> None:
        self.weight = tf.Variable(tf.reshape(tf.range(8192.0), (4096, 2)) / 8192.0, name="weight")

    def preprocess(self, text: Any) -> Any:
        """One token a byte."""
        pieces = tf.strings.bytes_split(text)[:, : self.max_sequence_length]
        ids = tf.cast(tf.strings.to_hash_bucket_fast(pieces, 99).to_tensor(), tf.int32)
        lengths = tf.cast(pieces.row_lengths(), tf.int32)
        return SimpleNamespace(token_ids=ids, segment_ids=tf.zeros_like(ids), lengths=lengths)

    def measure(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Length and label of each text."""
        length = tf.strings.length(text)
        scores = tf.cast(length, tf.float32)[:, None] * tf.reduce_mean(self.weight, 0)
        label = tf.gather(self.labels, tf.cast(length > 20, tf.int32))
        return {"length": length, "scores": scores, "label": label}

    def weigh(self, token_ids: Any, segment_ids: Any, lengths: Any) -> dict[str, tf.Tensor]:
        """The sum of the tokens that are real."""
        real = tf.cast(tf.range(tf.shape(token_ids)[1]) < lengths[:, None], tf.float32)
        numbers = tf.cast(token_ids + segment_ids, tf.float32) * real
        return {"weight": tf.reduce_sum(numbers, 1) * self.weight[1, 1]}

    def signatures(self) -> dict[str, Any]:
        """The functions of an export and the specs of their inputs."""
        tokens = [
            tf.TensorSpec((None, None), tf.int32, name="token_ids"),
            tf.TensorSpec((None, None), tf.int32, name="segment_ids"),
            tf.TensorSpec((None,), tf.int32, name="lengths"),
        ]
        text = [tf.TensorSpec((None,), tf.string, name="text")]
        return {"serving_default": (self.measure, text), "tokens": (self.weigh, tokens)}


class Chooser:
    """Says how many choices there are: one that a server must not pad."""

    name = "chooser"

    def choose(self, context: Any, choices: Any) -> dict[str, tf.Tensor]:
        """The longest choice."""
        lengths = tf.strings.length(choices) + tf.strings.length(context)[:, None]
        return {"choice": tf.argmax(lengths, 1, output_type=tf.int32)}

    def signatures(self) -> dict[str, Any]:
        """The function of an export and the specs of its inputs."""
        specs = [
            tf.TensorSpec((None,), tf.string, name="context"),
            tf.TensorSpec((None, None), tf.string, name="choices"),
        ]
        return {"choose": (self.choose, specs)}
