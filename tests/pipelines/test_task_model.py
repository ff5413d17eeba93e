"""What tasks share: defaults of `compile`, and a life in files; shown on the least of tasks."""

import keras
import numpy as np
import pytest

from kbert.optimization.adamw import AdamW
from kbert.pipelines.task_model import TaskModel
from tests.small_bert import INPUTS, small_bert


@keras.saving.register_keras_serializable("tests")
class FirstNumber(TaskModel):
    """The mean of the first state, as logit of one class against nothing."""

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")
        self.built = True

    def call(self, inputs, training=None):
        state = self.encoder(inputs, training=training)["pooled_output"]
        return keras.ops.mean(state, axis=-1, keepdims=True) * self.scale

    def default_loss(self):
        return keras.losses.MeanSquaredError()

    def default_metrics(self):
        return ["mae"]

    def get_config(self):
        encoder = keras.saving.serialize_keras_object(self.encoder)
        return {**super().get_config(), "encoder": encoder}


def made_model():
    return FirstNumber(small_bert(dropout=0.0, attention_dropout=0.0), name="model")


TARGETS = np.array([[0.5], [-0.5], [0.0], [1.0]], "float32")


def test_a_task_must_say_its_loss():
    task = TaskModel()
    with pytest.raises(NotImplementedError, match="TaskModel must say its loss"):
        task.compile()
    assert task.default_metrics() == []


def test_what_is_not_given_is_the_tasks_own():
    model = made_model()
    model.compile()
    assert isinstance(model.optimizer, AdamW)
    assert isinstance(model.loss, keras.losses.MeanSquaredError)
    found = model.evaluate(INPUTS, TARGETS, verbose=0, return_dict=True)
    numbers = np.asarray(model(INPUTS))
    assert found["loss"] == pytest.approx(((numbers - TARGETS) ** 2).mean(), rel=1e-4)
    assert found["mae"] == pytest.approx(np.abs(numbers - TARGETS).mean(), rel=1e-4)


def test_what_is_given_stays():
    model = made_model()
    loss = keras.losses.MeanAbsoluteError()
    model.compile(keras.optimizers.SGD(0.1), loss, ["mse"], run_eagerly=True)
    assert isinstance(model.optimizer, keras.optimizers.SGD) and model.loss is loss
    assert model.run_eagerly
    assert sorted(model.evaluate(INPUTS, TARGETS, verbose=0, return_dict=True)) == ["loss", "mse"]


def test_token_ids_have_no_budget_of_positions():
    model = made_model()
    model.compile()
    with pytest.raises(ValueError, match="`batch_tokens` must be None for token ids. .* 64"):
        model.fit(INPUTS, TARGETS, batch_tokens=64)
    for epochs in (0, -1, 1.5, True):
        message = f"^`epochs` must be a whole number, at least 1. Received: epochs={epochs}$"
        with pytest.raises(ValueError, match=message):
            model.fit(INPUTS, TARGETS, epochs=epochs)


def test_the_optimizer_has_its_state_before_the_step_is_traced():
    model = made_model()
    model.compile()
    assert not model.optimizer.built
    model.make_train_function()
    assert model.optimizer.built


@pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer")
def test_saved_and_loaded(tmp_path):
    model = made_model()
    model.compile(AdamW(1e-3, weight_decay=0.5), loss="mae")
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config() and again.loss == "mae"
    assert again.optimizer.built and again.optimizer.decay == 0.5
    np.testing.assert_array_equal(again(INPUTS), model(INPUTS))
    copy = FirstNumber.from_config(model.get_config())
    assert copy.encoder is not model.encoder
    assert copy.encoder.get_config() == model.encoder.get_config()
