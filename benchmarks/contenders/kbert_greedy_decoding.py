"""Greedy decoding in one graph of kbert."""

from side_by_side.turns import Turns

turns = Turns()

import keras
import numpy as np
import tensorflow as tf

from kbert.architectures import encoder_decoder_class
from kbert.decoding.search import greedy_search


def main() -> None:
    """Answers with milliseconds of decoding a batch, and its first sentence alone."""
    keras.utils.set_random_seed(1)
    settings = turns.settings
    model = encoder_decoder_class(settings["architecture"])(**settings["size"])
    bias = np.zeros(model.vocabulary_size)
    bias[settings["end"]] = -1e4  # nothing ends before its last step
    model.output_layer.bias.assign(bias)
    arrays, steps = np.load(settings["data"]), settings["steps"]
    shape = (None, None)

    @tf.function(input_signature=[tf.TensorSpec(shape, tf.int32), tf.TensorSpec(shape, tf.bool)])
    def decoded(ids: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        rows = tf.shape(ids)[0]
        memory = model.encode({"source_token_ids": ids, "source_padding_mask": mask})
        most = tf.fill((rows,), steps + 1)  # with the end
        ends = {"start_id": settings["start"], "end_id": settings["end"], "max_lengths": most}
        return greedy_search(model.decode_step, model.start_decoding(memory), rows, **ends)[0]

    def decode(rows: int) -> np.ndarray:
        length = int(arrays["mask"][:rows].sum(1).max())
        return decoded(*(tf.constant(arrays[n][:rows, :length]) for n in ("ids", "mask"))).numpy()

    assert decode(1).shape == (1, 1, steps + 1)
    turns.ready("kbert-tf", "keras", "tensorflow")
    turns.serve({"batch": lambda: decode(len(arrays["ids"])), "single": lambda: decode(1)})


if __name__ == "__main__":
    main()
