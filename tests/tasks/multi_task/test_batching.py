"""Raw texts of several tasks as mixed batches: each row as its own task's model would have it."""

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from kbert.data.batches.mixtures import Sampling
from kbert.tasks.classification.model import Classifier
from kbert.tasks.multi_task.model import MultiTaskModel
from kbert.tasks.ner.model import EntityRecognizer
from kbert.tasks.regression.model import Regressor
from tests.small_pipelines import TAGS, TOKENIZER, random_texts, small_encoder
from tests.training.eager_steps import eager_functions, eager_steps

LABELS = ["no", "yes", "perhaps"]
X: dict[str, Any] = {
    "kind": random_texts(12, 1),
    "score": (random_texts(9, 2), random_texts(9, 3)),
    "names": [["the", "film"], ["a", "good", "bad", "xy"], ["goodness"], ["very", "Q"] * 15],
}
Y: dict[str, Any] = {
    "kind": [LABELS[number % 3] for number in range(12)],
    "score": [number / 4 for number in range(9)],
    "names": [["O", "B-PER"], ["O", "O", "B-LOC", "I-LOC"], ["B-PER"], ["O", "B-LOC"] * 15],
}


def made(**kwargs: Any) -> MultiTaskModel:
    """A classifier, a regressor of pairs and a recognizer of entities, on one encoder."""
    random.seed(3)  # which Keras takes its seeds from
    encoder = small_encoder()
    models = {
        "kind": Classifier(encoder, TOKENIZER, LABELS, 24),
        "score": Regressor(encoder, TOKENIZER, 16, pair=True),
        "names": EntityRecognizer(encoder, TOKENIZER, TAGS, 20, 4),
    }
    return MultiTaskModel(models, **kwargs)


@pytest.fixture(scope="module")
def model() -> MultiTaskModel:
    return made()


def rows_of(inputs: Any, targets: Any, chosen: np.ndarray) -> list[Any]:
    """Rows without their padding: ids, segments, and the target."""
    found = []
    targets = np.asarray(targets)
    keys = ("padding_mask", "token_ids", "segment_ids")
    columns = [np.asarray(inputs[key]) for key in keys]
    for row in np.flatnonzero(chosen):
        real, ids, segments = (column[row] for column in columns)
        ids, segments = ids[real], segments[real]
        target = targets[row]
        target = target[real] if target.ndim else target
        found.append((ids.tolist(), segments.tolist(), target.tolist()))
    return sorted(found)


def of_tasks(model: MultiTaskModel, batches: Any) -> dict[str, list[Any]]:
    """The rows of each task in mixed batches."""
    found: dict[str, list[Any]] = {name: [] for name in model.models}
    for inputs, targets in batches:
        for number, name in enumerate(model.models):
            own = np.equal(inputs["task_ids"], number)
            found[name] += rows_of(inputs, targets[name], own)
    return {name: sorted(rows) for name, rows in found.items()}


def alone(model: MultiTaskModel) -> dict[str, list[Any]]:
    """The rows that each task's own model makes of its texts."""
    found = {}
    for name, one in model.models.items():
        inputs, targets = one.batching.one_batch(X[name], Y[name], None)
        found[name] = rows_of(inputs, targets, np.ones(len(targets), bool))
    return found


# --- batches ---------------------------------------------------------------------------------


def test_rows_are_those_of_the_tasks_alone(model):
    expected = alone(model)
    assert [len(rows) for rows in expected.values()] == [12, 9, 5]  # the last of windows
    for cut in ({}, {"batch_size": 5}, {"batch_size": None, "batch_tokens": 60}):
        batches = model.batching.text_batches(X, Y, **cut)
        assert of_tasks(model, batches) == expected
        whole = [len(inputs["task_ids"]) for inputs, _ in batches]
        assert sum(whole) == 26 and (len(whole) == 1) == (not cut)
    one = model.batching.one_batch(X, Y, None)
    assert of_tasks(model, [one]) == expected
    in_other_order = ({name: column[name] for name in reversed(list(X))} for column in (X, Y))
    assert of_tasks(model, [model.batching.one_batch(*in_other_order, None)]) == expected


def test_shuffled_batches_follow_the_sampling():
    model = made(sampling={"kind": 1, "score": 1.0, "names": 2})
    mixed = model.batching.mixed({name: (X[name], Y[name]) for name in X})
    assert len(mixed) == 26 and mixed.counts == (12, 9, 5)
    dataset = model.dataset(mixed, batch_size=5, shuffle=True, seed=4)
    passes = [of_tasks(model, dataset) for _ in range(2)]
    for found in passes:
        assert [len(rows) for rows in found.values()] == [7, 6, 13]
    expected = alone(model)
    for name, at_least in (("kind", 1), ("score", 1), ("names", 5)):  # 14 of 12, 12 of 9, 26 of 5
        often = Counter(str(row) for found in passes for row in found[name])
        assert set(often) == {str(row) for row in expected[name]}
        assert set(often.values()) == {at_least, at_least + 1}
    again = model.dataset(mixed, batch_size=5, shuffle=True, seed=4)
    assert of_tasks(model, again) == passes[0]
    plain = model.dataset(mixed, batch_size=5)
    assert of_tasks(model, plain) == expected


def test_annealing_goes_over_the_epochs_of_the_model():
    model = made(sampling="annealed")
    mixed = model.batching.mixed({name: (X[name], Y[name]) for name in X})
    for epochs in (1, 3):
        model.annealing_epochs = epochs
        dataset = model.dataset(mixed, batch_size=9, shuffle=True)
        for epoch in range(epochs):
            quotas = Sampling("annealed").quotas((12, 9, 5), epoch, epochs)
            found = of_tasks(model, dataset)
            assert [len(rows) for rows in found.values()] == quotas


def test_a_dataset_of_batches_stays_as_it_is(model):
    assert model.batching.text_batches(model.batching.text_batches(X, Y)) is None


def test_training_reads_the_epochs():
    """`fit` on texts tells the sampling how many epochs there are; batches have their own."""
    model = made(sampling="annealed")
    model.compile(run_eagerly=True)
    seen = []
    compute_loss = model.compute_loss

    def noted(x: Any, *args: Any, **kwargs: Any) -> Any:
        seen.extend(x["task_ids"].numpy().tolist())
        return compute_loss(x, *args, **kwargs)

    model.compute_loss = noted
    model.fit(X, Y, batch_size=9, epochs=2, verbose=0)
    assert model.annealing_epochs == 2
    for epoch in range(2):
        quotas = Sampling("annealed").quotas((12, 9, 5), epoch, 2)
        assert np.bincount(seen[26 * epoch : 26 * epoch + 26]).tolist() == quotas
    model.fit(model.batching.text_batches(X, Y, batch_size=26), epochs=3, verbose=0)
    assert model.annealing_epochs == 2


# --- predictions -----------------------------------------------------------------------------


def test_predictions_are_those_of_the_models(model):
    texts = {"score": X["score"], "kind": X["kind"]}
    with eager_steps(), eager_functions():  # each is asked once
        found = model.predict(texts)
        assert list(found) == ["score", "kind"]
        for name in texts:
            expected = model.models[name].predict(texts[name])
            np.testing.assert_array_equal(found[name], expected)
        (row,) = model.predict({"names": ["the good film"]})["names"]
        (expected_row,) = model.models["names"].predict(["the good film"])
    assert sorted(row) == sorted(expected_row)
    for name, value in row.items():
        np.testing.assert_array_equal(value, expected_row[name])


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x, y, message",
    [
        ({"kind": ["a"]}, Y, r"`x` must be a dict of the tasks kind, .*Received: \['kind'\]"),
        (X, {**Y, "more": [1]}, "`y` must be a dict of the tasks kind, .*'kind', 'more'"),
        (X["kind"], Y["kind"], "`x` must be a dict of the tasks .* Received: list"),
        (X, None, "`y` must be a dict of the tasks .* Received: NoneType"),
    ],
)
def test_wrong_dicts(model, x, y, message):
    for function in (model.fit, model.evaluate, model.train_on_batch):
        with pytest.raises(ValueError, match=message):
            function(x, y)


@pytest.mark.parametrize(
    "name, x, y, error, message",
    [
        ("kind", ["a", "b"], ["no"], ValueError, "`y` must have one entry a text. .*1 for 2 texts"),
        ("kind", ["a"], ["maybe"], ValueError, "`y` must hold labels of .*maybe"),
        ("kind", ["a"], None, ValueError, "`y` must be given with texts"),
        ("kind", np.zeros((2, 3)), [0, 1], ValueError, "`x` must be texts or pairs. .*: ndarray"),
        ("kind", ["a", 3], ["no", "no"], TypeError, r"`x\[1\]` must be str or bytes. .*3"),
        ("kind", (["a"], ["b"]), ["no"], ValueError, "`x` must be single texts"),
        ("score", ["a"], [1.0], ValueError, "`x` must be pairs of texts"),
        ("score", (["a"], ["b"]), [float("nan")], ValueError, "`y` must hold finite numbers"),
        ("names", np.zeros((2, 3)), [["O"]] * 2, ValueError, "`x` must be texts. .*: ndarray"),
        ("names", None, [["O"]], ValueError, "`x` must be texts. Received: NoneType"),
        ("names", [["a", "b"]], [["O"]], ValueError, r"`y\[0\]` must have a tag for each"),
        ("names", [], [], ValueError, "`x` must hold at least one text. Received: none"),
    ],
)
def test_wrong_texts_of_a_task(model, name, x, y, error, message):
    with pytest.raises(error, match=f"^task '{name}': {message}"):
        model.fit({**X, name: x}, {**Y, name: y})


def test_a_task_of_no_texts(model):
    with pytest.raises(ValueError, match="each task must have examples. Received: none for 'kind'"):
        model.fit({**X, "kind": []}, {**Y, "kind": []})


def test_weights_and_calls_on_texts(model):
    with pytest.raises(ValueError, match="`sample_weight` must be None with texts of this task"):
        model.fit(X, Y, sample_weight=[1.0] * 26)
    for texts in (["a"], {"kind": ["a"]}, tf.constant(["a"])):
        with pytest.raises(ValueError, match="must be token ids for the MultiTaskModel"):
            model(texts)
