"""A program: trains with one device and with two replicas, and prints how far they are apart.

Its argument is a run: "descent", in which every loss of the package meets batches whose halves have
different numbers of rows, and of tokens that count, in float64, each with a head of its own; or
"adamw", of one loss. Its output is JSON: the largest difference of the weights of each head, how
far they moved, and the largest of the losses shown; of "adamw" also the mean loss of all tokens as
`evaluate` shows it, and by hand; or "captions", of a captioner, whose attention adds to the loss.
"""

import json
import sys
from contextlib import nullcontext

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from kbert.optimization.adamw import AdamW
from kbert.optimization.losses import SoftmaxCrossEntropy
from kbert.optimization.next_token_losses import LabelSmoothedCrossEntropy
from kbert.optimization.sequence_losses import SpanCrossEntropy, TokenCrossEntropy
from kbert.pipelines.replication import Replication
from kbert.pipelines.task_model import TaskModel
from tests.replica_process import two_devices
from tests.tasks.captioning.test_head import small

CLASSES, WORDS, LONGEST = 3, 7, 5
# Real tokens of each row, for each batch: unequal halves, an odd number of rows, fewer rows than
# replicas, and a half of which no token counts.
ROWS = ([5, 4, 1, 1], [2, 5, 1, 3, 4], [3], [4, 2, 0, 0])


class Head(keras.layers.Layer):
    """An embedding and a dense layer: logits of tokens, or of what they are on the average."""

    def __init__(self, of_tokens, units, **kwargs):
        super().__init__(**kwargs)
        self.of_tokens = of_tokens
        self.table = keras.layers.Embedding(WORDS, 4)
        self.dense = keras.layers.Dense(units)

    def build(self, input_shape=None):
        self.table.build((None, None))
        self.dense.build((None, None, 4))
        self.built = True

    def call(self, ids):
        logits = self.dense(ops.tanh(self.table(ids)))
        return logits if self.of_tokens else ops.mean(logits, axis=1)


class Heads(TaskModel):
    """A head for each loss, with weights of its own."""

    def __init__(self, names, **kwargs):
        super().__init__(**kwargs)
        self.replication = Replication(self)
        self.heads = {name: Head(*CASES[name][:2], name=name) for name in names}
        draw = np.random.default_rng(4)
        for head in self.heads.values():
            head.build()
            for variable in head.trainable_variables:
                variable.assign(draw.normal(size=variable.shape))
        self.built = True

    def call(self, ids, training=None):
        return {name: head(ids) for name, head in self.heads.items()}


def token_ids(lengths, draw):
    """Classes of tokens, -1 behind each row's real ones."""
    classes = draw.integers(0, CLASSES, (len(lengths), LONGEST))
    return np.where(np.arange(LONGEST) < np.array(lengths)[:, None], classes, -1).astype("int32")


def token_shares(lengths, draw):
    """Distributions of tokens, all 0 behind each row's real ones."""
    shares = draw.dirichlet(np.ones(CLASSES), (len(lengths), LONGEST))
    return shares * (token_ids(lengths, draw) >= 0)[:, :, None]


def spans(lengths, draw):
    """Up to two spans of each row, -1 for none."""
    return draw.integers(-1, LONGEST, (len(lengths), 2, 2))


def classes(lengths, draw):
    return draw.integers(0, CLASSES, len(lengths)).astype("int32")


def scores(lengths, draw):
    return draw.normal(size=(len(lengths), 1))


# Whether a head has an output a token, how many numbers that is, its loss, and its targets.
CASES = {
    "classes": (False, CLASSES, SoftmaxCrossEntropy, classes),
    "weighted_classes": (False, CLASSES, lambda: SoftmaxCrossEntropy([1.0, 2.0, 0.5]), classes),
    "scores": (False, 1, keras.losses.MeanSquaredError, scores),
    "spans": (True, 2, SpanCrossEntropy, spans),
    "tokens": (True, CLASSES, TokenCrossEntropy, token_ids),
    "shares": (True, CLASSES, TokenCrossEntropy, token_shares),
    "shares_of_sequences": (True, CLASSES, lambda: TokenCrossEntropy("sequence"), token_shares),
    "smoothed": (True, CLASSES, LabelSmoothedCrossEntropy, token_ids),
    "smoothed_of_sequences": (
        True,
        CLASSES,
        lambda: LabelSmoothedCrossEntropy(per="sequence"),
        token_ids,
    ),
    "masked_tokens": (True, CLASSES, lambda: LabelSmoothedCrossEntropy(0.0), token_ids),
}


def batches(names, weighted):
    """A dataset of batches of any number of rows, which do not depend on the replicas."""
    draw, found = np.random.default_rng(9), []
    for lengths in ROWS:
        ids = draw.integers(0, WORDS, (len(lengths), LONGEST)).astype("int32")
        targets = {name: CASES[name][3](lengths, draw) for name in names}
        weights = draw.uniform(0.5, 2.0, len(lengths))
        found.append((ids, targets, weights) if weighted else (ids, targets))
    specs = tf.nest.map_structure(lambda x: tf.TensorSpec((None, *x.shape[1:]), x.dtype), found[0])
    made = tf.data.Dataset.from_generator(lambda: iter(found), output_signature=specs)
    return made.apply(tf.data.experimental.assert_cardinality(len(found)))


class Losses(keras.callbacks.Callback):
    """What each execution shows as the loss."""

    def __init__(self):
        super().__init__()
        self.shown = []

    def on_train_batch_end(self, batch, logs=None):
        self.shown.append(float(logs["loss"]))


def trained(scope, names, optimizer, data, **compiled):
    """The weights of each head after two epochs, and the losses shown."""
    with scope:
        model = Heads(names)
        model.compile(optimizer(), {name: CASES[name][2]() for name in names}, **compiled)
    shown = Losses()
    model.fit(data, epochs=2, verbose=0, shuffle=False, callbacks=[shown])
    weights = {
        name: [variable.numpy() for variable in head.trainable_variables]
        for name, head in model.heads.items()
    }
    return weights, shown.shown


def largest(first, second):
    """The largest difference of two lists of arrays."""
    return max(float(np.abs(a - np.asarray(b)).max()) for a, b in zip(first, second))


def apart(strategy, names, *run, **compiled):
    """The largest differences between one device and the replicas, and how far weights moved."""
    weights, losses = trained(nullcontext(), names, *run, **compiled)
    others, other_losses = trained(strategy.scope(), names, *run, **compiled)
    begin = {name: head.trainable_variables for name, head in Heads(names).heads.items()}
    return {
        "weights": {name: largest(weights[name], others[name]) for name in names},
        "learned": {name: largest(weights[name], begin[name]) for name in names},
        "losses": float(np.abs(np.subtract(losses, other_losses)).max()),
    }


class OneHead(Heads):
    """A head whose loss is a mean over tokens, and its logits alone."""

    def __init__(self):
        super().__init__(["smoothed"])

    def call(self, ids, training=None):
        return self.heads["smoothed"](ids)


def evaluated(scope, data):
    """The loss that `evaluate` shows of batches with unlike numbers of tokens."""
    with scope:
        model = OneHead()
        model.compile("sgd", LabelSmoothedCrossEntropy(0.1))
    return model.evaluate(data, verbose=0, return_dict=True)["loss"]


def mean_by_hand(data):
    """The same: the sum of the losses of all tokens by their number."""
    model, losses = OneHead(), []
    for ids, targets in data.as_numpy_iterator():
        logits = model(ids).numpy()
        logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        smooth = 0.9 * np.eye(CLASSES)[targets] + 0.1 / CLASSES
        losses.append(-(smooth * logs).sum(axis=-1)[targets >= 0])
    return float(np.concatenate(losses).mean())


def captions():
    """Batches of rows of unlike lengths, of which a replica may have none."""
    draw, found = np.random.default_rng(9), []
    for lengths in ROWS[:3]:
        features = draw.normal(size=(len(lengths), 16, 6))
        ids = token_ids(lengths, draw)
        read = np.maximum(ids, 0)
        found.append(({"features": features, "target_token_ids": read}, ids))
    specs = tf.nest.map_structure(lambda x: tf.TensorSpec((None, *x.shape[1:]), x.dtype), found[0])
    made = tf.data.Dataset.from_generator(lambda: iter(found), output_signature=specs)
    return made.apply(tf.data.experimental.assert_cardinality(len(found)))


def attending(scope):
    """The weights of a captioner with soft attention after two epochs, and the losses shown."""
    with scope:
        model = small("soft", attention_penalty=1.0)
        model.replication = Replication(model)
        model(next(iter(captions()))[0])  # which makes its variables
        model.compile(keras.optimizers.SGD(0.5))
    shown = Losses()
    model.fit(captions(), epochs=2, verbose=0, shuffle=False, callbacks=[shown])
    return [variable.numpy() for variable in model.decoder.trainable_variables], shown.shown


def captioners_apart(strategy):
    """As `apart`."""
    weights, losses = attending(nullcontext())
    others, other_losses = attending(strategy.scope())
    begin = small("soft").decoder.trainable_variables
    return {
        "weights": {"captions": largest(weights, others)},
        "learned": {"captions": largest(weights, begin)},
        "losses": float(np.abs(np.subtract(losses, other_losses)).max()),
    }


def main(run):
    two_devices()
    keras.config.set_floatx("float64")
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def descent():
        return keras.optimizers.SGD(0.5)

    def adamw():
        # Its steps depend on the norm of all gradients, and every second one updates.
        return AdamW(0.05, global_clipnorm=0.1, gradient_accumulation_steps=2)

    if run == "descent":
        every = list(CASES)
        print(json.dumps(apart(strategy, every, descent, batches(every, True))))
        return
    if run == "captions":
        print(json.dumps(captioners_apart(strategy)))
        return
    one = ["smoothed"]
    found = apart(strategy, one, adamw, batches(one, False), steps_per_execution=3)
    tokens = batches(one, False).map(lambda ids, targets: (ids, targets["smoothed"]))
    found["evaluated"] = [evaluated(nullcontext(), tokens), evaluated(strategy.scope(), tokens)]
    found["by_hand"] = mean_by_hand(tokens)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
