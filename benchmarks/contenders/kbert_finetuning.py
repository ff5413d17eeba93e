"""kbert's `fit`, in slices of as many steps as it is asked for."""

import json
import time
from pathlib import Path
from typing import Any

from side_by_side.turns import Turns

turns = Turns()

import keras
import tensorflow as tf

from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.pipelines.classification import Classifier
from kbert.pipelines.regression import Regressor


class Slices(keras.callbacks.Callback):
    """Holds `fit` until a request comes, lets it run so many steps, and answers with the time."""

    def __init__(self, counts: tf.Variable) -> None:
        super().__init__()
        self.counts = counts
        self.steps = self.left = 0
        self.start = 0.0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self.left:
            return
        request = turns.wait()
        if request is None:
            raise SystemExit
        self.steps = self.left = request["steps"]
        self.counts.assign([0, 0])
        self.start = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.left -= 1
        if not self.left:
            seconds = time.perf_counter() - self.start
            tokens, cells = self.counts.numpy().tolist()
            turns.answer(steps=self.steps, seconds=seconds, tokens=tokens, cells=cells)


def main() -> None:
    """Trains until no request comes."""
    keras.utils.set_random_seed(1)
    data = json.loads(Path(turns.settings["data"]).read_text())
    model: Any
    options = {"pair": data["text_b"] is not None, "max_sequence_length": turns.settings["length"]}
    if data["labels"]:
        model = Classifier.from_pretrained(turns.settings["encoder"], data["labels"], **options)
    else:
        model = Regressor.from_pretrained(turns.settings["encoder"], **options)
    start = time.perf_counter()
    packed = model.pack(data["text_a"], data["text_b"])
    tokenization = time.perf_counter() - start
    steps = turns.settings["total_steps"]
    model.compile(optimizer=AdamW(WarmupLinearDecay(1e-4, steps, steps // 10)))

    # Real tokens and cells are counted in the step itself: what was trained on, not what was read.
    counts = tf.Variable([0, 0])
    train_step = model.train_step

    def counting_step(batch: Any) -> Any:
        mask = batch[0]["padding_mask"]
        counts.assign_add([tf.math.count_nonzero(mask, dtype=tf.int32), tf.size(mask)])
        return train_step(batch)

    model.train_step = counting_step
    targets = model.encode_targets(data["targets"])
    dataset = model.dataset(packed, targets, batch_size=32, shuffle=True, seed=1)
    turns.ready("kbert", "keras", "tensorflow", tokenization=tokenization)
    model.fit(dataset, epochs=1000, verbose=0, callbacks=[Slices(counts)])


if __name__ == "__main__":
    main()
