import weakref

import numpy as np
import pytest

from kbert.data.classification.text_pairs import read_text_examples
from kbert.tasks.classification.model import Classifier
from kbert.training.runs import load_model as module
from kbert.training.runs.load_model import load_model, predict_average


@pytest.fixture(scope="module")
def others(tiny, tmp_path_factory):
    """Two classifiers with heads of their own."""
    folder = tmp_path_factory.mktemp("others")
    made = {"same": ["down", "up"], "turned": ["up", "down"]}
    return {
        name: Classifier.from_pretrained(
            tiny.encoder, labels=labels, max_sequence_length=16
        ).save_pretrained(folder / name)
        for name, labels in made.items()
    }


def test_the_mean_of_probabilities(finished_run, others, tiny):
    examples = read_text_examples(tiny.texts["test"])
    one = load_model(finished_run).predict(examples.text_a)
    two = load_model(others["same"]).predict(examples.text_a)
    averaged = predict_average([finished_run, others["same"]], examples)
    np.testing.assert_allclose(averaged.predictions, (one.astype("d") + two) / 2, atol=1e-6)
    assert averaged.models == 2 and averaged.labels == ["down", "up"]
    np.testing.assert_allclose(averaged.predictions.sum(-1), 1.0, atol=1e-6)


def test_one_model_is_in_memory_at_a_time(finished_run, others, tiny, monkeypatch):
    before, there = [], []

    def load(folder):
        there.append(sum(model() is not None for model in before))
        model = load_model(folder)
        before.append(weakref.ref(model))
        return model

    monkeypatch.setattr(module, "load_model", load)
    examples = read_text_examples(tiny.texts["test"])
    assert predict_average([finished_run, others["same"]], examples).models == 2
    assert there == [0, 0]


def test_models_must_fit_each_other(finished_run, others, tiny):
    examples = read_text_examples(tiny.texts["test"])
    with pytest.raises(ValueError, match="Classifier of down, up in .*Classifier of up, down in"):
        predict_average([finished_run, others["turned"]], examples)
    with pytest.raises(ValueError, match="`directories` must hold at least one run"):
        predict_average([], examples)
