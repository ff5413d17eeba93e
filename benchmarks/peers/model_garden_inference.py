"""Model Garden from raw strings to class names: its preprocessing layers and its classifier."""

import json
from pathlib import Path
from typing import Any

from side_by_side.turns import Turns

turns = Turns()

import numpy as np
import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers, models, networks
from safetensors.numpy import load_file

BATCH = 32
# The weights of a block in the order of Model Garden's variables.
BLOCK = (
    *(f"attention.self.{name}" for name in ("query", "key", "value")),
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)
EMBEDDINGS = ("word_embeddings", "position_embeddings", "token_type_embeddings")


def arrays(weights: dict[str, np.ndarray], num_layers: int) -> list[np.ndarray]:
    """The weights of a Hugging Face classifier in the order of Model Garden's variables."""
    modules = ["bert.embeddings.LayerNorm"]
    for layer in range(num_layers):
        modules += [f"bert.encoder.layer.{layer}.{name}" for name in BLOCK]
    modules += ["bert.pooler.dense", "classifier"]
    found = [weights[f"bert.embeddings.{name}.weight"] for name in EMBEDDINGS]
    for module in modules:
        # Hugging Face's kernels are (out, in).
        found += [weights[f"{module}.weight"].T, weights[f"{module}.bias"]]
    return found


def classifier(folder: Path, config: dict[str, Any]) -> Any:
    """The classifier of a Hugging Face folder."""
    encoder = networks.BertEncoder(
        vocab_size=config["vocab_size"],
        hidden_size=config["hidden_size"],
        num_layers=config["num_hidden_layers"],
        num_attention_heads=config["num_attention_heads"],
        inner_dim=config["intermediate_size"],
        inner_activation=tf_keras.activations.gelu,
        max_sequence_length=config["max_position_embeddings"],
        type_vocab_size=config["type_vocab_size"],
    )
    model = models.BertClassifier(encoder, num_classes=len(config["id2label"]))
    values = arrays(load_file(folder / "model.safetensors"), config["num_hidden_layers"])
    for variable, value in zip(model.variables, values, strict=True):
        variable.assign(value.reshape(variable.shape))
    return model


def main() -> None:
    """Answers with milliseconds of classifying all texts."""
    tf_keras.mixed_precision.set_global_policy(turns.settings["policy"])
    texts = json.loads(Path(turns.settings["data"]).read_text())
    folder = Path(turns.settings["model"])
    config = json.loads((folder / "config.json").read_text())
    model = classifier(folder, config)
    tokenizer = layers.FastWordpieceBertTokenizer(
        vocab_file=str(folder / "vocab.txt"), lower_case=turns.settings["lowercase"]
    )
    special = tokenizer.get_special_tokens_dict()
    pack = layers.BertPackInputs(turns.settings["length"], special_tokens_dict=special)

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string)])
    def best(text: tf.Tensor) -> tf.Tensor:
        return tf.argmax(model(pack([tokenizer(text)]), training=False), axis=-1)

    def classify() -> list[str]:
        ids: list[int] = []
        for start in range(0, len(texts), BATCH):
            ids.extend(best(tf.constant(texts[start : start + BATCH])).numpy().tolist())
        return [config["id2label"][str(i)] for i in ids]

    turns.ready("tf-models-official", "tf_keras", "tensorflow", labels=classify())
    turns.serve({"classify": classify})


if __name__ == "__main__":
    main()
