"""Small training steps, good ones and such as no TPU takes."""

from typing import Any

import keras
import tensorflow as tf

from kbert.models.bert import Bert
from kbert.optimization.adamw import AdamW
from kbert.tasks.classification.head import SequenceClassification
from kbert.tpu_check.models import CheckedModel

ROWS, LENGTH, LABELS = 3, 8, 2


def small_encoder(**others: Any) -> Bert:
    """One layer, 16 wide."""
    sizes: dict[str, Any] = {
        "vocabulary_size": 30,
        "max_sequence_length": LENGTH,
        "num_layers": 1,
        "hidden_dim": 16,
        "num_heads": 2,
        "intermediate_dim": 32,
    }
    return Bert(**{**sizes, **others})


def small_batch(rows: int = ROWS, length: int = LENGTH) -> Any:
    """What the models here are given."""
    tokens = tf.TensorSpec((rows, length), tf.int32)
    mask = tf.TensorSpec((rows, length), tf.bool)
    inputs = {"token_ids": tokens, "segment_ids": tokens, "padding_mask": mask}
    return inputs, tf.TensorSpec((rows,), tf.int32)


class WithStrings(SequenceClassification):
    """Its loss goes through a string."""

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        loss = super().compute_loss(*args, **kwargs)
        return loss + 0.0 * tf.strings.to_number(tf.strings.as_string(loss))


class WithDynamicShape(SequenceClassification):
    """Its loss is of the real tokens alone, of which nobody knows the number."""

    def compute_loss(self, x: Any = None, *args: Any, **kwargs: Any) -> Any:
        loss = super().compute_loss(x, *args, **kwargs)
        real = tf.boolean_mask(x["token_ids"], x["padding_mask"])
        return loss + 0.0 * tf.reduce_sum(tf.cast(real, tf.float32))


class WithBessel(SequenceClassification):
    """Its loss has a function without a TPU kernel."""

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        loss = super().compute_loss(*args, **kwargs)
        return loss + 0.0 * tf.math.special.bessel_i0(tf.stop_gradient(loss))


def compiled(
    kind: type = SequenceClassification, rows: int = ROWS, length: int = LENGTH, **encoder: Any
) -> CheckedModel:
    """A model of a class with its optimizer, and its batch."""
    keras.utils.set_random_seed(1)
    model = kind(small_encoder(max_sequence_length=length, **encoder), LABELS)
    model.compile(AdamW(1e-3), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    return CheckedModel(model, small_batch(rows, length), "a small step")
