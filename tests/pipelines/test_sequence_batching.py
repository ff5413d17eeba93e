"""fit, evaluate and predict on raw strings: every form of them, and whatever stands in them."""

import math

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from kbert.data.batches.plans import batch_plan
from kbert.optimization.adamw import AdamW
from kbert.pipelines.batching import EVALUATION_TOKENS
from kbert.pipelines.signatures import model_inputs
from tests import numpy_reference as reference
from tests.small_pipelines import TEXTS, random_texts, small_classifier

TEXT_A = random_texts(40, seed=1)
TEXT_B = random_texts(40, seed=2)
LABELS = np.random.default_rng(3).integers(0, 3, 40)
NAMES = [("no", "yes", "perhaps")[i] for i in LABELS]
WEIGHTS = np.random.default_rng(4).uniform(0, 2, 40).astype("float32")


@pytest.fixture(scope="module")
def model():
    """Compiled; the tests with it train no further."""
    made = small_classifier()
    made.compile()
    return made


@pytest.fixture(scope="module")
def predicted(model):
    return model.predict(TEXT_A)


@pytest.fixture
def pair_model(model, monkeypatch):
    """The same model, which reads pairs."""
    monkeypatch.setattr(model, "pair", True)
    return model


def one_by_one(model, texts_a, texts_b=None):
    """The answers of the graph function for each text alone."""
    rows = []
    for i, text in enumerate(texts_a):
        pair = [tf.constant([text])] + ([] if texts_b is None else [tf.constant([texts_b[i]])])
        rows.append(np.asarray(model.scores(model_inputs(model.preprocess(*pair))))[0])
    return np.array(rows)


def losses(probabilities, labels=LABELS):
    return -np.log(probabilities[np.arange(len(labels)), labels])


# --- predict ---------------------------------------------------------------------------------


def test_order_and_independence_of_rows(model, predicted):
    assert predicted.shape == (40, 3) and predicted.dtype == "float32"
    np.testing.assert_allclose(predicted.sum(-1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(predicted, one_by_one(model, TEXT_A), atol=1e-5)
    assert len(np.unique(predicted.round(3), axis=0)) > 20  # the rows can be told apart
    for batch_size in (1, 7):
        some = model.predict(TEXT_A[:9], batch_size=batch_size)
        np.testing.assert_allclose(some, predicted[:9], atol=1e-5)


def test_pairs(pair_model):
    model = pair_model
    found = model.predict((TEXT_A[:12], TEXT_B[:12]))
    np.testing.assert_allclose(found, one_by_one(model, TEXT_A[:12], TEXT_B[:12]), atol=1e-5)
    turned = model.predict((TEXT_B[:12], TEXT_A[:12]))
    assert np.abs(turned - found).max() > 0.01


def test_every_form_of_x_gives_the_same(model, predicted):
    packed = model.pack(TEXT_A)
    (ready,) = model.dataset(packed, batch_size=40).as_numpy_iterator()
    order = np.argsort(-packed.lengths, kind="stable")
    strings = tf.data.Dataset.from_tensor_slices(TEXT_A).batch(16)
    forms = {
        "tuple": tuple(TEXT_A),
        "array": np.array(TEXT_A),
        "objects": np.array(TEXT_A, dtype=object),
        "bytes": [text.encode() for text in TEXT_A],
        "tensor": tf.constant(TEXT_A),
        "dict": {"text": TEXT_A},
        "dataset of strings": strings,
        "dataset of dicts": strings.map(lambda text: {"text": text}),
    }
    for name, x in forms.items():
        np.testing.assert_allclose(model.predict(x), predicted, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(model.predict(ready), predicted[order], atol=1e-5)
    batches = model.dataset(packed, batch_size=16)
    np.testing.assert_allclose(model.predict(batches), predicted[order], atol=1e-5)
    np.testing.assert_allclose(model.batching.predict_packed(packed), predicted, atol=1e-5)


def test_forms_of_pairs_give_the_same(pair_model):
    model = pair_model
    a, b = TEXT_A[:8], TEXT_B[:8]
    expected = model.predict((a, b))
    strings = tf.data.Dataset.from_tensor_slices({"text_a": a, "text_b": b}).batch(3)
    for x in ({"text_b": b, "text_a": a}, (np.array(a), tuple(b)), strings):
        np.testing.assert_allclose(model.predict(x), expected, atol=1e-5)


def test_numbers_of_rows(model):
    for nothing in ([], {"text": []}, np.array([], dtype=object)):
        found = model.predict(nothing)
        assert found.shape == (0, 3) and found.dtype == "float32"
    assert model.predict(["a"]).shape == (1, 3)
    many = random_texts(2000, seed=9, longest=8)
    found = model.predict(many)
    assert found.shape == (2000, 3)
    some = [0, 1, 999, 1500, 1999]
    np.testing.assert_allclose(found[some], one_by_one(model, [many[i] for i in some]), atol=1e-5)


def test_whatever_is_sent(model):
    found = model.predict(TEXTS)
    assert found.shape == (len(TEXTS), 3) and np.isfinite(found).all()
    np.testing.assert_allclose(found, one_by_one(model, TEXTS), atol=1e-5)
    # Nothing, white space and dropped bytes are all the same: [CLS] [SEP].
    empty = model.predict(["", " \t", b"\xff", "\0", "\ud800"])
    np.testing.assert_allclose(empty, np.repeat(empty[:1], 5, axis=0), atol=1e-6)


def test_whatever_is_sent_as_pairs(pair_model):
    assert np.isfinite(pair_model.predict((TEXTS, list(reversed(TEXTS))))).all()
    assert pair_model.predict(([], [])).shape == (0, 3)


def test_a_megabyte(model):
    long = "good " * 200_000
    found = model.predict([long, "a"])
    cut = model.predict(["good " * 22, "a"])  # 24 with [CLS] and [SEP]
    np.testing.assert_allclose(found, cut, atol=1e-6)


def test_predictions_of_any_batch_stay_within_the_budget(model):
    shapes = []
    call = model.scores
    model.scores = lambda x: shapes.append(x["token_ids"].shape) or call(x)
    try:
        model.predict_function = None
        model.run_eagerly = True
        model.predict(random_texts(500, seed=5))
    finally:
        model.run_eagerly, model.scores, model.predict_function = False, call, None
    assert sum(rows for rows, _ in shapes) == 500
    assert max(rows * width for rows, width in shapes) <= EVALUATION_TOKENS


# --- evaluate --------------------------------------------------------------------------------


def test_evaluation_is_the_mean_over_all_texts(model, predicted):
    expected = losses(predicted).mean()
    accuracy = (predicted.argmax(-1) == LABELS).mean()
    for y in (NAMES, LABELS, LABELS[:, None], np.array(NAMES)):
        for batch_size in (None, 7):
            found = model.evaluate(TEXT_A, y, batch_size, verbose=0, return_dict=True)
            assert found["loss"] == pytest.approx(expected, rel=1e-4)
            assert found["accuracy"] == pytest.approx(accuracy)


def test_evaluation_of_soft_labels_and_weights(model, predicted):
    soft = reference.smooth_labels(LABELS, 3, 0.3).astype("float32")
    logs = np.log(predicted)
    found = model.evaluate(TEXT_A, soft, verbose=0)[0]
    assert found == pytest.approx(-(soft * logs).sum(-1).mean(), rel=1e-4)
    found = model.evaluate(TEXT_A, NAMES, sample_weight=WEIGHTS, verbose=0)[0]
    assert found == pytest.approx((losses(predicted) * WEIGHTS).mean(), rel=1e-4)


def test_evaluation_of_datasets_and_ready_ids(model, predicted):
    expected = losses(predicted).mean()
    packed = model.pack(TEXT_A)
    ready = model.dataset(packed, LABELS, batch_size=40)
    ((inputs, labels),) = ready.as_numpy_iterator()
    names = [model.labels[i] for i in labels]
    strings = tf.data.Dataset.from_tensor_slices((TEXT_A, NAMES)).batch(9)
    numbered = tf.data.Dataset.from_tensor_slices(({"text": TEXT_A}, LABELS)).batch(9)
    for arguments in ((ready,), (inputs, labels), (inputs, names), (strings,), (numbered,)):
        found = model.evaluate(*arguments, verbose=0)[0]
        assert found == pytest.approx(expected, rel=1e-4)


# --- fit -------------------------------------------------------------------------------------

EIGHT = ["a good film", "very good", "the film! good", "good goodness", "bad", "a bad film"]
EIGHT += ["very very bad!", "the bad film"]
MOODS = ["good"] * 4 + ["bad"] * 4


@pytest.mark.slow
def test_eight_sentences_are_learned():
    keras.utils.set_random_seed(1)
    model = small_classifier(["bad", "good"], dropout=0.1)
    model.compile(AdamW(5e-3))
    history = model.fit(EIGHT, MOODS, 4, 12, 0, validation_data=(EIGHT, MOODS)).history
    assert sorted(history) == ["accuracy", "loss", "val_accuracy", "val_loss"]
    assert history["loss"][-1] < 0.2 < math.log(2) / 2 < history["loss"][0]
    assert history["val_accuracy"][-1] == 1.0
    assert [row["label"] for row in model.answers(EIGHT)] == MOODS


def trained_weights(model, *arguments, **kwargs):
    model.fit(*arguments, verbose=0, **kwargs)
    return np.concatenate([np.ravel(w) for w in model.get_weights()])


@pytest.fixture(scope="module")
def descending():
    """Trained by plain gradient descent, whose steps add up and leave no state."""
    made = small_classifier()
    made.compile(keras.optimizers.SGD(0.05), metrics=[])
    return made, made.get_weights()


@pytest.fixture
def fresh(descending):
    """Gives the model its first weights again; that saves tracing another one."""

    def make():
        made, start = descending
        made.set_weights(start)
        return made

    return make


def test_weights_of_zero_take_texts_out_of_training(fresh):
    weights = np.where(np.arange(16) % 2, 1.0, 0.0)
    changed = [NAMES[i] if i % 2 else "perhaps" for i in range(16)]
    first, second = (
        trained_weights(fresh(), TEXT_A[:16], y, 16, sample_weight=weights)
        for y in (NAMES[:16], changed)
    )
    assert changed != NAMES[:16]
    np.testing.assert_allclose(first, second, atol=1e-6)
    # Half of the texts, but the mean is over 16: half of the step that 8 texts make.
    start = np.concatenate([np.ravel(w) for w in fresh().get_weights()])
    alone = trained_weights(fresh(), TEXT_A[1:16:2], NAMES[1:16:2], 8)
    np.testing.assert_allclose(first - start, (alone - start) / 2, atol=1e-5)


def test_class_weights_are_weights_of_the_texts(fresh):
    by_class = {0: 2.0, 1: 0.5, 2: 1.0}
    weights = [by_class[y] for y in LABELS[:16]]
    by_name = {"no": 2.0, "yes": 0.5}  # and "perhaps" weighs 1
    one = trained_weights(fresh(), TEXT_A[:16], NAMES[:16], 16, class_weight=by_name)
    ids = trained_weights(fresh(), TEXT_A[:16], NAMES[:16], 16, class_weight=by_class)
    np.testing.assert_array_equal(one, ids)
    other = trained_weights(fresh(), TEXT_A[:16], NAMES[:16], 16, sample_weight=weights)
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_soft_labels_of_certainty_are_hard_labels(fresh):
    one = trained_weights(fresh(), TEXT_A[:16], np.eye(3)[LABELS[:16]], 16)
    other = trained_weights(fresh(), TEXT_A[:16], NAMES[:16], 16)
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_seed_decides_the_batches(fresh):
    one, again, other = (
        trained_weights(fresh(), TEXT_A, NAMES, 8, seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 1e-5


class Rows(keras.callbacks.Callback):
    """Counts the batches of each epoch."""

    def __init__(self):
        super().__init__()
        self.batches = []

    def on_epoch_begin(self, epoch, logs=None):
        self.batches.append(0)

    def on_train_batch_end(self, batch, logs=None):
        self.batches[-1] += 1


def test_batches_by_count_and_by_budget(fresh):
    model, rows = fresh(), Rows()
    lengths = model.pack(TEXT_A).lengths
    model.fit(TEXT_A, NAMES, epochs=2, verbose=0, callbacks=[rows])
    assert rows.batches == [2, 2]  # 32 and 8
    model.fit(TEXT_A, NAMES, batch_tokens=200, shuffle=False, verbose=0, callbacks=[rows])
    assert rows.batches[-1] == len(batch_plan(lengths, None, 200))


def test_held_out_texts(fresh):
    model = fresh()
    history = model.fit(
        TEXT_A[:20], NAMES[:20], verbose=0, validation_data=(TEXT_A[20:], NAMES[20:], WEIGHTS[20:])
    ).history
    after = model.predict(TEXT_A[20:])
    expected = (losses(after, LABELS[20:]) * WEIGHTS[20:]).mean()
    assert history["val_loss"][0] == pytest.approx(expected, rel=1e-3)


def test_validation_split_holds_out_the_last(fresh):
    model = fresh()
    one = trained_weights(model, TEXT_A, NAMES, 8, validation_split=0.25)
    held_out = losses(model.predict(TEXT_A[30:]), LABELS[30:]).mean()
    assert model.history.history["val_loss"][0] == pytest.approx(held_out, rel=1e-3)
    np.testing.assert_allclose(one, trained_weights(fresh(), TEXT_A[:30], NAMES[:30], 8), atol=1e-6)


def test_validation_data_come_before_validation_split(fresh):
    """As in Keras: the split is left alone then, and all examples train."""
    model = fresh()
    others = (TEXT_A[:4], NAMES[:4])
    found = trained_weights(
        model, TEXT_A[:16], NAMES[:16], 8, validation_split=0.5, validation_data=others
    )
    expected = losses(model.predict(TEXT_A[:4]), LABELS[:4]).mean()
    assert model.history.history["val_loss"][0] == pytest.approx(expected, rel=1e-3)
    without = trained_weights(fresh(), TEXT_A[:16], NAMES[:16], 8)
    np.testing.assert_allclose(found, without, atol=1e-6)


def test_a_dataset_has_its_own_targets(model):
    dataset = tf.data.Dataset.from_tensor_slices((TEXT_A[:4], NAMES[:4])).batch(2)
    model.compile()
    for verb in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match="`y` should not be passed"):
            verb(dataset, NAMES[:4], verbose=0)
        with pytest.raises(ValueError, match="`sample_weights` should not be passed"):
            verb(dataset, sample_weight=np.ones(4), verbose=0)


def test_fitting_datasets(fresh):
    expected = trained_weights(fresh(), TEXT_A[:16], NAMES[:16], 16)
    strings = tf.data.Dataset.from_tensor_slices((TEXT_A[:16], NAMES[:16])).batch(16)
    weighed = tf.data.Dataset.from_tensor_slices((TEXT_A[:16], LABELS[:16], [1.0] * 16)).batch(16)
    ready = fresh().dataset(fresh().pack(TEXT_A[:16]), LABELS[:16], batch_size=16)
    for name, dataset in (("strings", strings), ("weighed", weighed), ("ready", ready)):
        found = trained_weights(fresh(), dataset, validation_data=strings)
        np.testing.assert_allclose(found, expected, atol=1e-5, err_msg=name)


def test_no_xla_unless_asked_for(model):
    # Each length of a batch would be compiled anew.
    assert model.jit_compile is False
    other = small_classifier()
    other.compile(jit_compile=True)
    assert other.jit_compile is True


def test_tables_and_iterators(model, fresh):
    """A table with the model's columns, its columns, and iterators are as good as lists."""
    frame = pd.DataFrame({"text": TEXT_A[:16], "label": NAMES[:16], "weight": WEIGHTS[:16]})
    expected = model.evaluate(TEXT_A[:16], NAMES[:16], 16, 0, WEIGHTS[:16])[0]
    forms = (
        (frame, frame["label"], frame["weight"]),
        (frame["text"], frame["label"].astype("category"), list(frame["weight"])),
        (iter(TEXT_A[:16]), pd.Series(LABELS[:16], dtype="Int64"), iter(WEIGHTS[:16])),
    )
    for x, y, weights in forms:
        assert model.evaluate(x, y, 16, 0, weights)[0] == pytest.approx(expected, rel=1e-5)
    assert model.answers(frame) == model.answers(TEXT_A[:16])
    one = trained_weights(fresh(), frame, frame["label"], 16, validation_data=(frame, LABELS[:16]))
    other = trained_weights(fresh(), TEXT_A[:16], NAMES[:16], 16)
    np.testing.assert_array_equal(one, other)


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x, y, kwargs, message",
    [
        (["a", "b"], ["no"], {}, "`y` must have one entry a text. Received: 1 for 2 texts"),
        (["a"], None, {}, "`y` must be given with texts. Received: y=None"),
        ([], [], {}, "`x` must hold at least one text. Received: none"),
        (
            ["a", "b"],
            ["no", "yes"],
            {"sample_weight": [1.0]},
            "`sample_weight` must have one entry a text. Received: 1 for 2 texts",
        ),
        (
            ["a", "b"],
            ["no", "yes"],
            {"sample_weight": [1.0, float("nan")]},
            r"`sample_weight` must hold finite numbers of at least 0. Received: \[1.0, nan\]",
        ),
        ("a", ["no"], {}, "`x` must be a list of texts. Received: x='a', a single one"),
        ((["a"], ["b", "c"]), ["no"], {}, "`text_b` must be as long as `text_a`. Received: 1 and"),
        (
            ["a"],
            ["maybe"],
            {},
            r"`y` must hold labels of \['no', 'yes', 'perhaps'\]. Received: \['maybe'\]",
        ),
    ],
)
def test_wrong_arguments(model, x, y, kwargs, message):
    for method in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match=message):
            method(x, y, verbose=0, **kwargs)


def test_a_missing_text(model):
    for method in (model.predict, model.answers, model):
        with pytest.raises(TypeError, match=r"`x\[1\]` must be str or bytes. Received: None"):
            method(["a", None])


def test_pairs_for_a_model_of_single_texts_and_the_reverse(model, monkeypatch):
    texts = tf.data.Dataset.from_tensor_slices(["a", "b"]).batch(2)
    pairs = tf.data.Dataset.from_tensor_slices(((["a", "b"], ["c", "d"]), ["no", "yes"])).batch(2)
    for method, x in ((model.predict, (["a"], ["b"])), (model.evaluate, pairs)):
        with pytest.raises(ValueError, match="`x` must be single texts: .*Received: pairs"):
            method(x)
    monkeypatch.setattr(model, "pair", True)
    for x in (["a"], texts):
        with pytest.raises(ValueError, match="`x` must be pairs of texts.*Received: single texts"):
            model.predict(x)


@pytest.mark.parametrize("method", ["predict", "evaluate", "fit", "test_on_batch"])
def test_wrong_token_ids_are_refused_before_a_graph_runs(model, method):
    size, y = model.encoder.vocabulary_size, {} if method == "predict" else {"y": LABELS[:1]}
    message = rf"`token_ids` must be in \[0, {size}\), the encoder's vocabulary. Received: {size}"
    with pytest.raises(ValueError, match=f"^{message}"):
        getattr(model, method)({"token_ids": np.array([[2, size, 3]])}, **y)


def test_token_ids_in_lists(model):
    ids = [[2, 5, 3], [2, 6, 3]]
    expected = model.predict({"token_ids": np.array(ids)})
    np.testing.assert_array_equal(model.predict({"token_ids": ids}), expected)


def test_an_unknown_name_in_a_dataset(model):
    strings = tf.data.Dataset.from_tensor_slices((["a", "b"], ["no", "maybe"])).batch(2)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`y` must hold labels of .*maybe\]"):
        model.evaluate(strings, verbose=0)


def test_a_budget_that_is_none(model):
    message = "`batch_tokens` must be at least 1. Received: batch_tokens=-1"
    with pytest.raises(ValueError, match=message):
        model.fit(["a"], ["no"], batch_tokens=-1)
    message = "`batch_size` must be None where `batch_tokens` is given. Received: batch_size=4"
    with pytest.raises(ValueError, match=message):
        model.fit(["a"], ["no"], batch_size=4, batch_tokens=64)


def test_answers_are_for_texts(model):
    with pytest.raises(ValueError, match="`x` must be texts or pairs of texts. Received: ndarray"):
        model.answers(np.zeros((2, 3)))
    table = pd.DataFrame({"text": [1, 2]})
    with pytest.raises(ValueError, match=r"Received: DataFrame of text \(int64\)"):
        model.answers(table)
    with pytest.raises(ValueError, match="Received: _BatchDataset, which `predict` takes"):
        model.answers(tf.data.Dataset.from_tensor_slices(["a"]).batch(1))
