"""kbert's forward pass and train step on random ids."""

from typing import Any

from side_by_side.turns import Turns

turns = Turns()

import keras
import numpy as np
import tensorflow as tf

from kbert.models.bert import Bert
from kbert.optimization.adamw import AdamW


def main() -> None:
    """Answers with milliseconds of "forward" and, unless weights are bfloat16, "train"."""
    layers, hidden, heads, intermediate, batch, length = turns.settings["size"]
    keras.utils.set_random_seed(1)
    model = Bert(30522, hidden, layers, heads, intermediate, dtype=turns.settings["policy"])
    shape = (batch, length)
    inputs = {
        "token_ids": tf.constant(np.random.randint(1000, 30000, shape), tf.int32),
        "segment_ids": tf.zeros(shape, tf.int32),
        "padding_mask": tf.ones(shape, tf.bool),
    }
    # Batch and length stay free, as `fit`, `predict` and exports run it.
    specs = {key: tf.TensorSpec((None, None), value.dtype) for key, value in inputs.items()}

    @tf.function(input_signature=[specs])
    def forward(x: Any) -> Any:
        return model(x, training=False)["sequence_output"]

    # The loss does not reach the pooler.
    variables = [v for v in model.trainable_variables if "pooler" not in v.path]
    optimizer = AdamW(1e-5, global_clipnorm=None)

    @tf.function(input_signature=[specs])
    def train(x: Any) -> Any:
        with tf.GradientTape() as tape:
            output = tf.cast(model(x, training=True)["sequence_output"], tf.float32)
            loss = tf.reduce_mean(tf.square(output))
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    works = {"forward": lambda: forward(inputs).numpy()}
    if turns.settings["policy"] != "bfloat16":  # such weights would lose small steps
        optimizer.build(variables)
        works["train"] = lambda: train(inputs).numpy()
    turns.ready("kbert-tf", "keras", "tensorflow")
    turns.serve(works)


if __name__ == "__main__":
    main()
