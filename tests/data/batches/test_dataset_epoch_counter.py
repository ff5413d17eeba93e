import keras
import numpy as np

from kbert.data.batches.dataset import with_epoch_counter
from kbert.data.batches.plans import batch_plan
from tests.small_pipelines import small_classifier

TEXTS = ["a", "a film", "the good film", "bad", "very bad film", "the", "good", "a good film"]


class Seen(keras.callbacks.Callback):
    """Counts the steps of each epoch."""

    def __init__(self):
        super().__init__()
        self.steps = []

    def on_epoch_begin(self, epoch, logs=None):
        self.steps.append(0)

    def on_train_batch_end(self, batch, logs=None):
        self.steps[-1] += 1


def test_each_epoch_has_the_batches_of_its_number(monkeypatch):
    model = small_classifier(("no", "yes"))
    model.compile()
    packed = model.pack(TEXTS)
    targets = model.encode_targets(["no", "yes"] * 4)
    begun = []
    monkeypatch.setattr(
        "kbert.data.batches.dataset.batch_plan",
        lambda *arguments: begun.append(arguments[-1]) or batch_plan(*arguments),
    )
    dataset = model.dataset(packed, targets, batch_size=2, shuffle=True)
    begun.clear()
    seen = Seen()
    model.fit(dataset, initial_epoch=1, epochs=4, verbose=0, callbacks=[seen])
    assert seen.steps == [4, 4, 4]
    # Keras begins a pass at the end of each epoch and never uses it: it changes nothing.
    assert [n for n, before in zip(begun, [None, *begun]) if n != before] == [1, 2, 3]
    # Nobody tells the number any more.
    first = [inputs["token_ids"].numpy() for inputs, _ in dataset]
    assert len(first) == 4 and isinstance(first[0], np.ndarray)


def test_other_datasets_and_callbacks_stay():
    assert with_epoch_counter(object(), None) is None
    model = small_classifier(("no", "yes"))
    dataset = model.dataset(model.pack(TEXTS))
    one = Seen()
    counter, same = with_epoch_counter(dataset, one)
    assert same is one
    counter.on_epoch_begin(3)
    assert dataset.epochs.told == 3
    counter.on_train_end()
    assert dataset.epochs.told is None
    assert len(with_epoch_counter(dataset, None)) == 1
    given = keras.callbacks.CallbackList()
    assert with_epoch_counter(dataset, given) is given
