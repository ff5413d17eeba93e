"""The forward pass and train step of keras-hub's or Model Garden's BERT on random ids."""

from typing import Any

from side_by_side.turns import Turns

turns = Turns()

import numpy as np
import tensorflow as tf


def keras_hub_model(size: list[int], policy: str) -> tuple[Any, Any, tuple[str, str, str]]:
    """keras-hub's encoder, an optimizer, and the names of its inputs."""
    import keras
    import keras_hub

    layers, hidden, heads, intermediate = size
    keras.config.set_dtype_policy(policy)
    model = keras_hub.models.BertBackbone(
        vocabulary_size=30522,
        num_layers=layers,
        num_heads=heads,
        hidden_dim=hidden,
        intermediate_dim=intermediate,
        max_sequence_length=512,
    )
    return model, keras.optimizers.AdamW(1e-5), ("token_ids", "padding_mask", "segment_ids")


def model_garden_model(size: list[int], policy: str) -> tuple[Any, Any, tuple[str, str, str]]:
    """Model Garden's encoder, an optimizer, and the names of its inputs."""
    import tf_keras
    from official.nlp.modeling import networks

    layers, hidden, heads, intermediate = size
    tf_keras.mixed_precision.set_global_policy(policy)
    model = networks.BertEncoderV2(
        vocab_size=30522,
        hidden_size=hidden,
        num_layers=layers,
        num_attention_heads=heads,
        inner_dim=intermediate,
        max_sequence_length=512,
    )
    names = ("input_word_ids", "input_mask", "input_type_ids")
    return model, tf_keras.optimizers.AdamW(1e-5), names


def main() -> None:
    """Answers with milliseconds of "forward" and "train"."""
    *size, batch, length = turns.settings["size"]
    library, xla = turns.settings["library"], turns.settings["xla"]
    make = {"keras-hub": keras_hub_model, "tf-models-official": model_garden_model}[library]
    model, optimizer, names = make(size, turns.settings["policy"])
    ids = np.random.randint(1000, 30000, (batch, length)).astype("int32")
    values = (ids, np.ones_like(ids), np.zeros_like(ids))
    inputs = {name: tf.constant(value) for name, value in zip(names, values)}
    model(inputs)
    # The loss does not reach the pooler.
    variables = [v for v in model.trainable_variables if "pool" not in getattr(v, "path", v.name)]
    optimizer.build(variables)

    @tf.function(jit_compile=xla)
    def forward(x: Any) -> Any:
        return model(x, training=False)["sequence_output"]

    @tf.function(jit_compile=xla)
    def train(x: Any) -> Any:
        with tf.GradientTape() as tape:
            output = tf.cast(model(x, training=True)["sequence_output"], tf.float32)
            loss = tf.reduce_mean(tf.square(output))
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(list(zip(gradients, variables)))
        return loss

    turns.ready(library, "keras" if library == "keras-hub" else "tf_keras", "tensorflow")
    turns.serve(
        {"forward": lambda: forward(inputs).numpy(), "train": lambda: train(inputs).numpy()}
    )


if __name__ == "__main__":
    main()
