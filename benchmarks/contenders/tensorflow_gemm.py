"""How fast TensorFlow multiplies large square matrices on this machine."""

from side_by_side.turns import Turns

turns = Turns()

import tensorflow as tf


def main() -> None:
    """Answers with milliseconds of one product "gemm"."""
    size, dtype = turns.settings["size"], turns.settings["precision"]
    a, b = (tf.cast(tf.random.normal((size, size)), dtype) for _ in range(2))
    product = tf.function(lambda: tf.matmul(a, b))
    turns.ready("tensorflow")
    turns.serve({"gemm": product})


if __name__ == "__main__":
    main()
