import keras
import pytest

from kbert.pipelines.signatures import label_maps
from kbert.pipelines.task_model import TaskModel
from tests.small_pipelines import small_classifier, small_regressor

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
