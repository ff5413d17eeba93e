"""Models, arguments and texts that several tasks cannot be trained with."""

import keras
import pytest

from kbert.tasks.multi_task.model import MultiTaskModel
from kbert.tasks.regression.model import Regressor
from kbert.text.wordpiece.wordpiece import WordPiece
from tests import small_pipelines as small
from tests.small_pipelines import VOCABULARY
from tests.tasks.multi_task.test_model import X, Y, made, some


@pytest.fixture(scope="module")
def model():
    return MultiTaskModel(made("kind", "score"))


def other_tokenizer(models):
    encoder, tokenizer = models["kind"].encoder, WordPiece(VOCABULARY, lowercase=False)
    return Regressor(encoder, tokenizer, max_sequence_length=24)


@pytest.mark.parametrize(
    "changed, message",
    [
        (lambda m: {"kind": m["kind"]}, r"two models or more .* Received: \['kind'\]"),
        (lambda m: [*m.values()], "must be a dict of two models or more .* Received: list"),
        (lambda m: {**m, "a-b": m["score"]}, "made of letters, digits .* Received: 'a-b'"),
        (lambda m: {**m, None: m["score"]}, "begin with no digit. Received: None"),
        (lambda m: {"1st": m["kind"], **m}, "begin with no digit. Received: '1st'"),
        (lambda m: {**m, "x": small.small_embedder()}, "one sequence .*: a TextEmbedder as 'x'"),
        (lambda m: {**m, "x": small.small_multiple_choice()}, ".*: a MultipleChoice as 'x'"),
        (lambda m: {**m, "x": made("kind")["kind"]}, "same encoder object.*'x' than for 'kind'"),
        (lambda m: {**m, "x": other_tokenizer(m)}, "equal tokenizers.* for 'x' than for 'kind'"),
    ],
)
def test_wrong_models(model, changed, message):
    with pytest.raises(ValueError, match=message):
        MultiTaskModel(changed(some(model.models, ("kind", "score"))))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"sampling": "random"}, "`sampling` must be one of .* Received: sampling='random'"),
        ({"sampling": {"kind": 1}}, r"for each of kind, score. Received: \['kind'\]"),
        ({"sampling": {"kind": 1, "score": 1, "x": 1}}, r"\['kind', 'score', 'x'\]"),
        ({"sampling": None}, "`sampling` must be a name, or have .* Received: None"),
        ({"sampling": {"kind": 1, "score": 0}}, r"a number above 0 .* sampling=\[1, 0\]"),
        ({"sampling": "temperature", "temperature": 0}, "`temperature` must be .*: 0"),
        ({"loss_weights": {"x": 1.0}}, r"for some of kind, score. .*loss_weights\['x'\]=1.0"),
        ({"loss_weights": {"kind": 0}}, r"numbers above 0 .*loss_weights\['kind'\]=0"),
    ],
)
def test_wrong_arguments(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiTaskModel(some(model.models, ("kind", "score")), **arguments)


@pytest.mark.parametrize("name", ["loss", "metrics"])
def test_compiling_an_unknown_task(name):
    model = MultiTaskModel(made("kind", "score"))
    message = f"`{name}` must be a dict by some of the tasks kind, score. Received: a, b"
    with pytest.raises(ValueError, match=message):
        model.compile(**{name: {"b": [], "kind": [], "a": []}})


@pytest.mark.parametrize(
    "values, message",
    [
        ({"loss": {"score": "mse"}}, r"`loss` must have Keras losses .* loss\['score'\]='mse'"),
        (
            {"loss": {"score": keras.losses.MeanSquaredError(reduction="sum")}},
            "that are means over a batch. Received: loss",
        ),
        ({"metrics": {"kind": ["accuracy"]}}, r"no names. Received: metrics\['kind'\]"),
        (
            {"metrics": {"score": [keras.metrics.mean_squared_error]}},
            "`metrics` must have lists of Keras metrics",
        ),
    ],
)
def test_compiling_with_what_rows_cannot_have(values, message):
    model = MultiTaskModel(made("kind", "score"))
    with pytest.raises(ValueError, match=message):
        model.compile(**values)


@pytest.mark.parametrize("name, value", [("class_weight", {"no": 2}), ("validation_split", 0.2)])
def test_fitting_with_what_belongs_to_one_task(model, name, value):
    model.compile()
    x, y = some(X, model.models), some(Y, model.models)
    with pytest.raises(ValueError, match=f"`{name}` must be left out where several tasks train"):
        model.fit(x, y, **{name: value})


@pytest.mark.parametrize("x", [{"nope": ["a"]}, ["a"]])
def test_predicting_for_no_task(model, x):
    with pytest.raises(ValueError, match="`x` must be a dict by some of kind, score. Received"):
        model.predict(x)
