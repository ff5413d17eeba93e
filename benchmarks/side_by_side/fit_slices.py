"""Keras' `fit`, in slices of as many steps as a comparison asks for."""

import time
from typing import Any

import keras
import tensorflow as tf
from side_by_side.turns import Turns


class FitSlices(keras.callbacks.Callback):
    """Holds `fit` until a request comes, lets it run so many steps, and answers with the time.

    Args:
        turns: where requests come from.
        trained: a model before its `fit`; its train step gets a count of tokens and cells. They are
            counted in the step itself: what was trained on, not what was read ahead.
    """

    def __init__(self, turns: Turns, trained: Any) -> None:
        super().__init__()
        self.turns = turns
        self.counts = counts = tf.Variable([0, 0])
        self.steps = self.left = 0
        self.start = 0.0
        train_step = trained.train_step

        def counting_step(batch: Any) -> Any:
            mask = batch[0]["padding_mask"]
            counts.assign_add([tf.math.count_nonzero(mask, dtype=tf.int32), tf.size(mask)])
            return train_step(batch)

        trained.train_step = counting_step

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self.left:
            return
        request = self.turns.wait()
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
            self.turns.answer(steps=self.steps, seconds=seconds, tokens=tokens, cells=cells)
