"""MultiTaskModel: its loss and gradients against those of each task's own model, and its life."""

import random
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import kbert
from kbert.optimization.adamw import AdamW
from kbert.tasks.classification.model import Classifier
from kbert.tasks.multi_label.model import MultiLabelClassifier
from kbert.tasks.multi_task.model import MultiTaskModel
from kbert.tasks.ner.model import EntityRecognizer
from kbert.tasks.question_answering.model import QuestionAnswerer
from kbert.tasks.regression.model import Regressor
from kbert.tasks.span_tagging.model import SpanTagger
from tests import small_pipelines as small
from tests.small_pipelines import TAGS, TOKENIZER, computed, random_texts

QUESTIONS = (["a film?", "what", "Q"], ["the good film . " * 4, "very bad", "the film"])
X: dict[str, Any] = {
    "kind": random_texts(7, 1),
    "score": random_texts(5, 2),
    "moods": random_texts(6, 3),
    "names": [["the", "film"], ["a", "good", "bad", "xy"], ["goodness"], ["very", "Q"] * 15],
    "answers": QUESTIONS,
    "spans": QUESTIONS,
}
Y: dict[str, Any] = {
    "kind": ["no", "yes", "perhaps", "yes", "no", "no", "yes"],
    "score": [0.5, 1.0, 2.0, -1.0, 0.0],
    "moods": [["joy"], [], ["anger"], ["joy", "anger"], [], ["joy"]],
    "names": [["O", "B-PER"], ["O", "O", "B-LOC", "I-LOC"], ["B-PER"], ["O", "B-LOC"] * 15],
    "answers": [[("good", 4)], [("bad", 5)], []],
    "spans": [[("good", 4), ("film", 9)], [("bad", 5)], []],
}
WEIGHTS = {"score": 0.5, "names": 2.0}
# Added to all scores of a softmax, which it leaves as they are: gradients only of rounding.
WITHOUT_EFFECT = ("key/bias", "span_head/bias")


def made(*names: str, **kwargs: Any) -> dict[str, Any]:
    """Models on one encoder, whose heads have weights as large as the encoder's."""
    random.seed(3)  # which Keras takes its seeds from
    encoder = small.small_encoder(**kwargs)
    on = {"encoder": encoder, "tokenizer": TOKENIZER, "max_sequence_length": 24, **kwargs}
    windows = {**on, "stride": 4, "max_question_length": 6}
    makers = {
        "kind": lambda: Classifier(labels=["no", "yes", "perhaps"], dropout=0.0, **on),
        "score": lambda: Regressor(dropout=0.0, **on),
        "moods": lambda: MultiLabelClassifier(labels=["joy", "anger"], dropout=0.0, **on),
        "names": lambda: EntityRecognizer(labels=TAGS, dropout=0.0, stride=4, **on),
        "answers": lambda: QuestionAnswerer(**windows),
        "spans": lambda: SpanTagger(dropout=0.0, **windows),
    }
    models = {name: makers[name]() for name in names}
    draw = np.random.default_rng(7)
    for model in models.values():
        for layer in model.head_layers().values():
            for variable in layer.trainable_variables:
                variable.assign(draw.normal(size=variable.shape))
    return models


def some(column: dict[str, Any], names: Any) -> dict[str, Any]:
    return {name: column[name] for name in names}


@pytest.fixture(scope="module")
def model():
    """All tasks, and their own models compiled as well."""
    found = MultiTaskModel(made(*X), dict.fromkeys(X, 2), loss_weights=WEIGHTS)
    for one in found.models.values():
        one.compile(run_eagerly=True)
    found.compile(run_eagerly=True)
    return found


def gradients(model, batch, variables):
    """The loss of a batch, and its gradients as arrays, zeros where there is none."""
    x, y = batch
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x, y, model(x, training=True))
    found = tape.gradient(loss, [one.value for one in variables])
    return float(loss), [
        np.zeros(one.shape, "float32") if grad is None else tf.convert_to_tensor(grad).numpy()
        for one, grad in zip(variables, found)
    ]


def combined(model, names, variables):
    """sum_k w_k (n_k / B) L_k and its gradients, each task by its own model on its own rows."""
    parts = []
    for name in names:
        one = model.models[name]
        batch = one.batching.one_batch(X[name], Y[name], None)
        rows = len(batch[0]["token_ids"])
        parts.append((WEIGHTS.get(name, 1.0) * rows, *gradients(one, batch, variables)))
    total = sum(rows / WEIGHTS.get(name, 1.0) for name, (rows, *_) in zip(names, parts))
    loss = sum(share * one for share, one, _ in parts) / total
    added = [sum(share * grads[i] for share, _, grads in parts) for i in range(len(variables))]
    return loss, [one / total for one in added]


# --- loss, gradients and metrics -------------------------------------------------------------


def test_loss_and_gradients_are_those_of_the_tasks_alone(model):
    batch = model.batching.one_batch(X, Y, None)
    variables = model.trainable_variables
    assert len({id(one) for one in variables}) == len(variables)
    loss, found = gradients(model, batch, variables)
    expected_loss, expected = combined(model, list(X), variables)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    for variable, one, other in zip(variables, found, expected):
        assert np.abs(other).max() > 1e-4 or variable.path.endswith(WITHOUT_EFFECT)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=variable.path)


@pytest.mark.parametrize("left", [["kind", "names"], ["moods"], ["answers", "score"]])
def test_a_task_without_rows_in_a_batch_counts_for_nothing(model, left):
    x, y = model.batching.one_batch(X, Y, None)
    numbers = [list(X).index(name) for name in left]
    rows = np.flatnonzero(np.isin(x["task_ids"], numbers))
    batch = tf.nest.map_structure(lambda column: tf.gather(column, rows), (x, y))
    variables = model.trainable_variables
    loss, found = gradients(model, batch, variables)
    expected_loss, expected = combined(model, left, variables)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    others = [one for name, one in model.models.items() if name not in left]
    layers = [layer for one in others for layer in one.head_layers().values()]
    heads = {id(variable) for layer in layers for variable in layer.trainable_variables}
    assert heads and not any(grad.any() for v, grad in zip(variables, found) if id(v) in heads)


def test_metrics_of_an_epoch_are_those_of_the_tasks_alone(model):
    found = model.evaluate(X, Y, verbose=0, return_dict=True)
    expected = {}
    for name, one in model.models.items():
        alone = one.evaluate(X[name], Y[name], verbose=0, return_dict=True)
        expected |= {f"{name}_{key}": value for key, value in alone.items()}
    assert sorted(found) == sorted([*expected, "loss"])
    assert found["loss"] == pytest.approx(combined(model, list(X), [])[0], rel=1e-5)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-5), name
    in_batches = model.evaluate(X, Y, batch_size=4, verbose=0, return_dict=True)
    for name in expected:
        assert in_batches[name] == pytest.approx(found[name], rel=1e-5), name


def test_outputs_are_those_of_the_models(model):
    x, _ = model.batching.one_batch(X, Y, None)
    inputs = {name: column for name, column in x.items() if name != "task_ids"}
    found = model(x)
    assert list(found) == list(X)
    for name, one in model.models.items():
        np.testing.assert_allclose(found[name], one(inputs), rtol=1e-5, atol=1e-5)


def test_losses_and_metrics_of_its_own():
    model = MultiTaskModel(made("kind", "score"))
    losses = {"score": keras.losses.MeanAbsoluteError()}
    model.compile(loss=losses, metrics={"score": [keras.metrics.MeanSquaredError()], "kind": []})
    model.run_eagerly = True
    x, y = some(X, model.models), some(Y, model.models)
    found = model.evaluate(x, y, verbose=0, return_dict=True)
    assert sorted(found) == ["kind_loss", "loss", "score_loss", "score_mean_squared_error"]
    away = computed(model.models["score"], X["score"]) - Y["score"]
    assert found["score_loss"] == pytest.approx(np.abs(away).mean(), rel=1e-5)
    assert found["score_mean_squared_error"] == pytest.approx(np.square(away).mean(), rel=1e-5)


# --- training --------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_learning_from_texts(steps):
    model = MultiTaskModel(made("kind", "names"), sampling="annealed")
    x, y = some(X, model.models), some(Y, model.models)
    model.compile(AdamW(0.01), steps_per_execution=steps)
    held_out = (x, y) if steps == 2 else None
    history = model.fit(x, y, 4, 12, verbose=0, validation_data=held_out).history
    assert model.annealing_epochs == 12
    assert history["loss"][-1] < 0.3 * history["loss"][0]
    for name in x:
        assert history[f"{name}_loss"][-1] < 0.3 * history[f"{name}_loss"][0]
        assert history[f"{name}_accuracy"][-1] > 0.9
    if steps == 2:
        names = ["loss", *(f"{name}_{kind}" for name in x for kind in ("loss", "accuracy"))]
        assert sorted(history) == sorted([*names, *(f"val_{name}" for name in names)])


def test_compiling_again_forgets_the_metrics_of_before():
    model = MultiTaskModel(made("kind", "score"))
    model.compile()
    model.compile(metrics={"kind": []}, run_eagerly=True)
    found = model.evaluate(some(X, model.models), some(Y, model.models), verbose=0)
    assert len(found) == len(model.metrics) == 3


def test_losses_and_metrics_that_need_distributions():
    model = MultiTaskModel(made("kind", "score"))
    loss = {"kind": keras.losses.CategoricalCrossentropy(from_logits=True)}
    metrics = {"kind": [keras.metrics.CategoricalAccuracy()]}
    model.compile(loss=loss, metrics=metrics, run_eagerly=True)
    x, y = some(X, model.models), some(Y, model.models)
    found = model.evaluate(x, y, verbose=0, return_dict=True)
    kind = model.models["kind"]
    kind.compile(run_eagerly=True)
    alone = kind.evaluate(x["kind"], y["kind"], verbose=0, return_dict=True)
    assert found["kind_loss"] == pytest.approx(alone["loss"], rel=1e-5)
    assert found["kind_categorical_accuracy"] == pytest.approx(alone["accuracy"])


def test_weights_of_a_dataset_are_refused():
    model = MultiTaskModel(made("kind", "score"))
    model.compile(run_eagerly=True)
    x, y = model.batching.one_batch(some(X, model.models), some(Y, model.models), None)
    weights = tf.ones(len(x["token_ids"]))
    dataset = tf.data.Dataset.from_tensors((x, y, weights))
    for verb in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match="`sample_weight` must be None where several tasks"):
            verb(dataset, verbose=0)


def test_mixed_precision():
    model = MultiTaskModel(made("kind", "names", "answers", dtype="mixed_bfloat16"))
    assert model.encoder.compute_dtype == "bfloat16"
    model.compile(AdamW(0.01), run_eagerly=True)
    before = [one.numpy() for one in model.trainable_variables]
    history = model.fit(some(X, model.models), some(Y, model.models), 8, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    for variable, old in zip(model.trainable_variables, before):
        assert variable.dtype == "float32" and np.isfinite(variable.numpy()).all()
        assert (variable.numpy() != old).any() or variable.path.endswith(WITHOUT_EFFECT)


@pytest.mark.parametrize("names", [("kind", "names"), ("names", "score"), ("names", "answers")])
def test_the_pooler_learns_where_a_head_reads_it(names):
    model = MultiTaskModel(made(*names))
    pooler = {id(one) for one in model.encoder.pooler.variables}
    trained = {id(one) for one in model.trainable_variables}
    assert pooler and (pooler <= trained) == ("answers" not in names)


# --- files -----------------------------------------------------------------------------------


def test_a_folder_for_each_task(model, tmp_path):
    folder = model.save_pretrained(tmp_path / "saved")
    assert folder == tmp_path / "saved"
    assert sorted(path.name for path in folder.iterdir()) == sorted(X)
    again = {name: kbert.load(folder / name, max_sequence_length=24) for name in X}
    assert all(type(again[name]) is type(one) for name, one in model.models.items())
    for name in ("kind", "score", "moods"):
        expected = computed(model.models[name], X[name])
        np.testing.assert_allclose(computed(again[name], X[name]), expected, atol=1e-5)
    inputs = model.models["names"].batching.one_batch(X["names"], Y["names"], None)[0]
    for name in ("names", "answers", "spans"):
        np.testing.assert_allclose(again[name](inputs), model.models[name](inputs), atol=1e-5)
    with pytest.raises(FileExistsError):
        model.save_pretrained(folder)
    assert model.save_pretrained(folder, overwrite=True) == folder


def test_a_keras_file(model, tmp_path):
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras", compile=False)
    assert again.get_config() == model.get_config() and list(again.models) == list(X)
    assert {id(one.encoder) for one in again.models.values()} == {id(again.encoder)}
    assert len(again.trainable_variables) == len(model.trainable_variables)
    x, _ = model.batching.one_batch(X, Y, None)
    expected = model(x)
    for name, outputs in again(x).items():
        np.testing.assert_allclose(outputs, expected[name], rtol=1e-5, atol=1e-5)
