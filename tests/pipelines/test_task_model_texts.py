import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.pipelines.signatures import label_maps
from kbert.pipelines.task_model import TaskModel
from tests.small_pipelines import small_classifier, small_entity_recognizer, small_regressor

MODELS = [small_classifier, small_regressor]


@pytest.mark.parametrize("make", MODELS)
def test_the_configuration_makes_the_model_again(make):
    model = make()
    again = type(model).from_config(model.get_config())
    assert isinstance(again, TaskModel)
    assert again.get_config() == model.get_config()
    assert again.tokenizer.tokens("a film!") == model.tokenizer.tokens("a film!")


@pytest.mark.parametrize("part", ["encoder", "tokenizer"])
def test_a_configuration_that_cannot_be_read_is_not_shown_whole(part):
    """Keras writes the whole configuration, vocabulary and all, into the error of a TypeError."""
    saved = keras.saving.serialize_keras_object(small_classifier())
    saved["config"][part]["registered_name"] = "tests>Unknown"
    with pytest.raises(ValueError, match="`config` must fit Classifier. Received: ") as caught:
        keras.saving.deserialize_keras_object(saved)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("make", MODELS)
def test_no_xla_unless_asked_for(make):
    model = make()
    model.compile()
    assert model.jit_compile is False
    model.compile(keras.optimizers.SGD(), jit_compile=True)
    assert model.jit_compile is True


def test_names_as_hugging_face_has_them():
    expected = {"id2label": {"0": "no", "1": "yes"}, "label2id": {"no": 0, "yes": 1}}
    assert label_maps(("no", "yes")) == expected


def test_what_preprocess_returns_is_an_input_of_the_model():
    model = small_classifier()
    texts = ["a good film", "very bad !"]
    packed = model.preprocess(tf.constant(texts))
    np.testing.assert_array_equal(model(packed), model(texts))


def test_an_epoch_of_a_budget_of_positions_ends_without_a_warning():
    model = small_classifier()
    model.compile(run_eagerly=True)
    texts = ["good", "a very good film", "bad"] * 4
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(texts, ["yes", "no", "no"] * 4, batch_tokens=32, epochs=2, verbose=0)
        assert not [one for one in seen if "ran out of data" in str(one.message)]
        # Steps that there are not are worth it.
        data = model.dataset(model.pack(texts), np.zeros(12, "int32"), batch_size=6)
        model.fit(data, steps_per_epoch=5, verbose=0)
        assert [one for one in seen if "ran out of data" in str(one.message)]


@pytest.mark.parametrize(
    "make, text, target",
    [(small_regressor, "a film", 1.0), (small_entity_recognizer, ["a", "film"], ["O", "O"])],
)
def test_examples_without_one_class_have_no_weights_of_classes(make, text, target):
    message = "`class_weight` must be None for the .*one class each.* Received: {'O': 0.5}"
    with pytest.raises(ValueError, match=message):
        make().fit([text], [target], class_weight={"O": 0.5})
