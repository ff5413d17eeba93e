"""What a batch of mixed lengths costs, with its padding and without.

    python benchmarks/padding.py GLUE_DIRECTORY cola rte:256

A task is name[:length]. Batches are of random company, as most recipes have them. `Bert` computes
their real tokens only where shapes are not fixed; `hidden_states` computes padding as well, which
makes the two contenders. They take turns in one process, on the same batches; counted are the real
tokens of a second.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from side_by_side.results import parser, write

from kbert.data.classification.glue_tasks import read_glue
from kbert.tasks.classification.model import Classifier

INPUTS = {"token_ids": tf.int32, "segment_ids": tf.int32, "padding_mask": tf.bool}
DTYPES = ("float32", "mixed_bfloat16")
Step = Callable[[dict[str, tf.Tensor]], tf.Tensor]


def padded(encoder: keras.Model, inputs: dict[str, tf.Tensor], training: bool) -> tf.Tensor:
    """The pooled output, padding computed too."""
    return encoder.pooler(encoder.hidden_states(inputs, training=training)[-1][:, 0])


def unpadded(encoder: keras.Model, inputs: dict[str, tf.Tensor], training: bool) -> tf.Tensor:
    """The pooled output, as `Bert` computes it."""
    return encoder(inputs, training=training)["pooled_output"]


def graph(encoder: keras.Model, pooled: Callable[..., tf.Tensor], work: str) -> Step:
    """The forward pass, or forward and backward with dropout, as a graph for any shape."""
    weights = [variable.value for variable in encoder.trainable_variables]

    def forward(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        return tf.reduce_sum(tf.cast(pooled(encoder, inputs, False), tf.float32))

    def train(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.cast(pooled(encoder, inputs, True), tf.float32) ** 2)
        gradients = tape.gradient(loss, weights)
        # A sum of each, so that none is left out of the graph.
        lists = [g.values if isinstance(g, tf.IndexedSlices) else g for g in gradients]
        return loss + tf.add_n([tf.reduce_sum(g) for g in lists])

    spec = {name: tf.TensorSpec((None, None), dtype) for name, dtype in INPUTS.items()}
    chosen = forward if work == "forward" else train
    return tf.function(chosen, input_signature=[spec], autograph=False)


def seconds(step: Step, batches: list[dict[str, tf.Tensor]]) -> float:
    """How long a step takes over all batches."""
    start = time.perf_counter()
    for batch in batches:
        step(batch).numpy()
    return time.perf_counter() - start


def rows_of(task: str, model: Any, batches: list[Any], arguments: Any) -> list[dict[str, Any]]:
    """A row for each kind of work."""
    masks = [np.asarray(batch["padding_mask"]) for batch in batches]
    tokens, cells = sum(int(m.sum()) for m in masks), sum(m.size for m in masks)
    rows = []
    for work in ("forward", "train"):
        steps = {way: graph(model.encoder, way, work) for way in (padded, unpadded)}
        times: dict[Any, list[float]] = {way: [] for way in steps}
        for turn in range(arguments.rounds + 1):
            for way, step in steps.items():
                elapsed = seconds(step, batches)
                if turn:  # the first ones make the graphs
                    times[way].append(elapsed)
        speeds = {way.__name__: round(tokens / statistics.median(t)) for way, t in times.items()}
        ratios = [one / other for one, other in zip(times[padded], times[unpadded])]
        row = {"task": task, "precision": model.encoder.compute_dtype, "work": work}
        row |= {"padding_share": round(1 - tokens / cells, 3)}
        row |= {f"{name}_tokens_per_second": speed for name, speed in speeds.items()}
        rows.append({**row, "times_as_fast": round(statistics.median(ratios), 2)})
    return rows


def main() -> None:
    """Measures all tasks in both precisions."""
    given = parser("padding", __doc__)
    given.add_argument("directory", type=Path, help="folder with CoLA/, RTE/, ...")
    given.add_argument("tasks", nargs="+", help="name[:length]")
    given.add_argument("--batches", type=int, default=8, help="batches of 32 examples")
    arguments = given.parse_args()
    rows: list[dict[str, Any]] = []
    for name in arguments.tasks:
        task, _, length = name.partition(":")
        examples = read_glue(task, arguments.directory).head(32 * arguments.batches)
        for dtype in DTYPES:
            model = Classifier.from_pretrained(
                "all-MiniLM-L6-v2",
                ["0", "1"],
                pair=examples.text_b is not None,
                max_sequence_length=int(length or 128),
                dtype=dtype,
            )
            packed = model.pack(examples.text_a, examples.text_b)
            batches = list(model.dataset(packed, batch_size=32, shuffle=True, parts=1))
            rows += rows_of(task, model, batches, arguments)
    settings = {"rounds": arguments.rounds, "batches": arguments.batches}
    write(arguments.output, {"rows": rows}, [], settings)


if __name__ == "__main__":
    main()
