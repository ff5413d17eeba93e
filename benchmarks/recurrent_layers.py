"""Recurrent layers: kbert's beside those of Keras with the same weights, on a padded batch.

    python benchmarks/recurrent_layers.py --rounds 15

They take turns in one process. Each kind of work is one graph for batches of any shape: the outputs
of all steps, or these with the gradients of the inputs and of all weights. The largest difference
is that from Keras' outputs in float32, over real tokens.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from side_by_side.results import parser, write

from kbert.layers.recurrent.cells import CELLS
from kbert.layers.recurrent.recurrent import Recurrent

DTYPES = ("float32", "mixed_bfloat16")
Outputs = Step = Callable[[Any, Any], Any]


def contenders(cell: str, dtype: str, inputs: int, units: int) -> dict[str, tuple[Any, Outputs]]:
    """Name -> a layer, and what gives its outputs (B, T, units) of inputs and mask."""
    keras.utils.set_random_seed(1)
    ours = Recurrent(units, cell, dtype=dtype)
    given = {"return_sequences": True, "dtype": dtype}
    if cell != "lstm":
        given["reset_after"] = cell != "gru"
    other = (keras.layers.LSTM if cell == "lstm" else keras.layers.GRU)(units, **given)
    for layer in (ours, other):
        layer.build((None, None, inputs))
    for weight in ours.weights[2:]:  # biases
        weight.assign(np.random.default_rng(1).normal(0.0, 0.1, weight.shape))
    bias = ours.bias.numpy()
    if ours.recurrent_bias is not None:
        bias = np.stack([bias, np.pad(ours.recurrent_bias.numpy(), (2 * units, 0))])
    other.set_weights([ours.kernel.numpy(), ours.recurrent_kernel.numpy(), bias])
    return {
        "kbert": (ours, lambda x, mask: ours.output(ours(x, mask=mask))),
        "keras": (other, lambda x, mask: other(x, mask=mask)),
    }


def graph(layer: Any, outputs: Outputs, work: str) -> Step:
    """The sum of the outputs, or of the gradients of their squares, for any shape."""
    weights = [variable.value for variable in layer.trainable_variables]

    def forward(x: Any, mask: Any) -> Any:
        return tf.reduce_sum(tf.cast(outputs(x, mask), tf.float32))

    def train(x: Any, mask: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.cast(outputs(x, mask), tf.float32) ** 2)
        # A sum of each, so that none is left out of the graph.
        gradients = tape.gradient(loss, [x, *weights])
        return loss + tf.add_n([tf.reduce_sum(tf.cast(g, tf.float32)) for g in gradients])

    width = layer.trainable_variables[0].shape[0]
    signature = [tf.TensorSpec((None, None, width)), tf.TensorSpec((None, None), tf.bool)]
    return tf.function(forward if work == "forward" else train, signature, autograph=False)


def milliseconds(step: Step, batch: tuple[Any, Any], repeats: int) -> float:
    """The median of a turn, which begins with a call that does not count."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        step(*batch).numpy()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[1:])


def rows_of(played: dict[str, Any], batch: tuple[Any, Any], given: Any) -> list[dict[str, Any]]:
    """A row for each contender."""
    rows: dict[str, dict[str, Any]] = {name: {"contender": name} for name in played}
    for work in ("forward", "train"):
        steps = {name: graph(layer, outputs, work) for name, (layer, outputs) in played.items()}
        times: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(given.rounds):
            for name, step in steps.items():
                times[name].append(milliseconds(step, batch, given.repeats))
        for name in steps:
            rows[name][f"{work}_milliseconds"] = round(statistics.median(times[name]), 1)
        ratios = [other / one for one, other in zip(times["kbert"], times["keras"])]
        rows["kbert"][f"{work}_times_as_fast"] = round(statistics.median(ratios), 2)
    return list(rows.values())


def main() -> None:
    """Measures all cells in both precisions."""
    arguments = parser("recurrent_layers", __doc__)
    sizes = {"rows": 64, "steps": 30, "inputs": 256, "units": 704, "repeats": 1}
    for name, size in sizes.items():
        arguments.add_argument(f"--{name}", type=int, default=size)
    given = arguments.parse_args()
    draw, rows = np.random.default_rng(1), []
    mask = np.arange(given.steps) <= draw.integers(given.steps // 3, given.steps, (given.rows, 1))
    x = draw.normal(size=(given.rows, given.steps, given.inputs)).astype("float32")
    batch = (tf.constant(x), tf.constant(mask))
    for cell in CELLS:
        played = {dtype: contenders(cell, dtype, given.inputs, given.units) for dtype in DTYPES}
        wanted = played["float32"]["keras"][1](*batch).numpy()[mask]
        for dtype in DTYPES:
            for row in rows_of(played[dtype], batch, given):
                found = tf.cast(played[dtype][row["contender"]][1](*batch), tf.float32).numpy()
                row["largest_difference"] = float(f"{abs(found[mask] - wanted).max():.1e}")
                rows.append({"cell": cell, "precision": dtype, **row})
    settings = {"keras": keras.__version__, **{n: getattr(given, n) for n in ("rounds", *sizes)}}
    settings |= {"real_share": round(float(mask.mean()), 2), "tensorflow": tf.__version__}
    write(given.output, {"rows": rows}, [], settings)


if __name__ == "__main__":
    main()
