"""Train steps of a translation model of kbert on given batches."""

from side_by_side.turns import Turns

turns = Turns()

import keras
import numpy as np
import tensorflow as tf

from kbert.architectures import encoder_decoder_class
from kbert.tasks.translation.head import Translation


def main() -> None:
    """Answers with milliseconds of training on all batches once."""
    keras.utils.set_random_seed(1)
    settings = turns.settings
    low = settings["precision"] == "bfloat16"
    policy = "mixed_bfloat16" if low else "float32"
    inner = encoder_decoder_class(settings["architecture"])(**settings["size"], dtype=policy)
    model = Translation(inner, dtype=policy)
    model.compile(jit_compile=False)
    batches: dict[str, dict[str, np.ndarray]] = {}
    for name, array in np.load(settings["data"]).items():
        number, _, column = name.partition("/")
        batches.setdefault(number, {})[column] = array

    def given() -> object:
        for batch in batches.values():
            inputs = {name: batch[name] for name in batch if name != "targets"}
            yield inputs, batch["targets"]

    shape = (None, None)
    kinds = {"source_padding_mask": tf.bool}
    names = ("source_token_ids", "source_padding_mask", "target_token_ids")
    inputs = {name: tf.TensorSpec(shape, kinds.get(name, tf.int32)) for name in names}
    signature = (inputs, tf.TensorSpec(shape, tf.int32))
    dataset = tf.data.Dataset.from_generator(given, output_signature=signature)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(batches))).prefetch(2)

    def train() -> float:
        return float(model.fit(dataset, verbose=0).history["loss"][0])

    turns.ready("kbert-tf", "keras", "tensorflow", loss=round(train(), 3))
    turns.serve({"train": train})


if __name__ == "__main__":
    main()
