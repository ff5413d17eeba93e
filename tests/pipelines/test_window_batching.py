"""Windows in chunks, batches of windows, and every way into `fit`, `evaluate` and `predict`."""

import re
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.data.batches.plans import batch_plan
from kbert.pipelines import window_batching as window_batching
from kbert.pipelines.task_model import TaskModel
from kbert.pipelines.window_batching import PREDICTION_ROWS, WindowBatching
from tests.pipelines.reading_reference import same_row, tokens_of, window_logits
from tests.small_pipelines import random_texts, small_question_answerer

CONTEXTS = [*random_texts(10, seed=1, longest=60), "", "film"]
QUESTIONS = random_texts(12, seed=2, longest=8)
X = (QUESTIONS, CONTEXTS)
SPECS = [tf.TensorSpec((None,), tf.string)] * 2


def answers_of(contexts):
    """The first whole word "good" or "film" of each context is its answer."""
    found = []
    for text in contexts:
        places = [text.find(word) for word in ("good", "film") if word in text]
        found.append([(text[place : place + 4], place) for place in places])
    return found


Y = answers_of(CONTEXTS)


@pytest.fixture(scope="module")
def model():
    """Compiled; the tests with it train no further."""
    made = small_question_answerer()
    made.compile()
    return made


@pytest.fixture(scope="module")
def windows(model):
    return model.examples(model.read_inputs(X), Y)


def agree(found, expected):
    for row, other in zip(found, expected, strict=True):
        same_row(row, other)


# --- windows in chunks -----------------------------------------------------------------------


def test_logits_of_all_windows(model):
    """`over_windows` gives the logits of each window, in any order, padded to its chunk."""
    offsets = model.tokenizer.tokenize_with_offsets(tf.constant(CONTEXTS))
    questions = model.tokenizer.tokenize(tf.constant(QUESTIONS))
    widths = []

    def read(logits, tokens, windows):
        widths.append(int(tf.size(tokens.token_ids)))
        logits = tf.pad(logits, [[0, 0], [0, 24 - logits.shape[1]], [0, 0]])
        return logits, windows.row, windows.first

    specs = [tf.TensorSpec((None, 24, 2), tf.float32), *[tf.TensorSpec((None,), tf.int32)] * 2]
    logits, row, first = model.batching.over_windows(offsets, questions, read, specs)
    found = {(int(r), int(f)): x.numpy() for r, f, x in zip(row, first, logits)}
    expected = {}
    for number, (question, context) in enumerate(zip(*X)):
        for window in window_logits(model, question, context):
            start = max(0, min([p for p in window.positions if p >= 0], default=0))
            expected[number, start] = window.logits
    assert sorted(found) == sorted(expected) and len(row) == len(expected)
    for place, wanted in expected.items():
        np.testing.assert_allclose(found[place][: len(wanted)], wanted, atol=1e-4)
    assert all(width <= model.batching.chunk_tokens for width in widths)


@pytest.mark.parametrize("cells", [1, 100])
def test_chunks_of_any_size_give_the_same(model, cells):
    some = [column[:3] for column in X]
    smaller = small_question_answerer()
    smaller.batching.chunk_tokens = cells
    values = smaller.answer(*map(tf.constant, some))
    rows = [{name: column[i].numpy() for name, column in values.items()} for i in range(3)]
    agree(rows, model.predict(tuple(some)))


def test_chunks_run_side_by_side(model):
    # A loop that reads variables would run one chunk at a time.
    traced = tf.function(model.answer, SPECS, autograph=False).get_concrete_function()
    graph = traced.graph.as_graph_def()
    nodes = [node for part in (graph, *graph.library.function) for node in nodes_of(part)]
    loops = [n for n in nodes if "While" in n.op and n.attr["parallel_iterations"].i == 4]
    assert [loop.op for loop in loops] == ["StatelessWhile"]


def nodes_of(part):
    return part.node if hasattr(part, "node") else part.node_def


def test_predict_keeps_the_order_of_many_rows(model):
    number = 2 * PREDICTION_ROWS + 5
    contexts = [f"{'film ' * (i % 9)}good {'a ' * (i % 7)}" for i in range(number)]
    questions = [("bad", "very good", "")[i % 3] for i in range(number)]
    found = model.predict((questions, contexts))
    some = [0, 1, 63, 64, 100, number - 1]
    expected = model.predict(([questions[i] for i in some], [contexts[i] for i in some]))
    agree([found[i] for i in some], expected)


def test_predict_reads_long_texts_a_few_at_a_time(model, monkeypatch):
    expected, sizes = model.predict(X), []
    graph = model.batching._compiled(model.answer, SPECS)

    def counted(question, context):
        sizes.append([len(text) for text in context.numpy()])
        return graph(question, context)

    monkeypatch.setattr(model.batching, "_compiled", lambda *_: counted)
    monkeypatch.setattr(window_batching, "BYTES_AT_A_TIME", 400)
    agree(model.predict(X), expected)
    assert sum(map(len, sizes)) == 12 and max(map(len, sizes)) > 1
    assert all(len(texts) == 1 or len(texts) * max(texts) <= 400 for texts in sizes)


def test_sizes_of_batches_of_predict(model, monkeypatch):
    expected, sizes = model.predict(X), []
    graph = model.batching._compiled(model.answer, SPECS)

    def counted(question, context):
        sizes.append(len(context.numpy()))
        return graph(question, context)

    monkeypatch.setattr(model.batching, "_compiled", lambda *_: counted)
    agree(model.predict(X, batch_size=5), expected)
    assert sorted(sizes) == [2, 5, 5]
    with pytest.raises(ValueError, match="`batch_size` must be a whole number above 0.*: -3"):
        model.predict(X, batch_size=-3)


def test_a_budget_for_ready_batches(model, windows):
    batches = model.batching.dataset(*windows, batch_size=4)
    with pytest.raises(ValueError, match="`batch_tokens` must be None for token ids and datasets"):
        model.fit(batches, batch_tokens=512, verbose=0)


def test_a_graph_is_traced_once(model):
    model.predict(X)
    function = model.batching._compiled(model.answer, SPECS)
    assert function.experimental_get_tracing_count() == 1
    model.predict((QUESTIONS[:3], CONTEXTS[3:6]))
    assert model.batching._compiled(model.answer, SPECS) is function
    assert function.experimental_get_tracing_count() == 1


# --- batches of windows ----------------------------------------------------------------------


def test_windows_and_targets_become_batches(model, windows):
    examples, targets = windows
    assert len(examples) == len(targets) > 12
    (whole,) = model.dataset(examples, targets, batch_size=len(examples)).as_numpy_iterator()
    inputs, labels = whole
    assert sorted(inputs) == ["padding_mask", "segment_ids", "token_ids"]
    order = np.argsort(-examples.packed.lengths, kind="stable")
    np.testing.assert_array_equal(labels, targets[order])
    np.testing.assert_array_equal(inputs["padding_mask"].sum(1), examples.packed.lengths[order])


def test_batches_are_those_of_the_plan(model, windows):
    examples, targets = windows
    plan = batch_plan(examples.packed.lengths, 4, None, True, seed=3, epoch=0)
    dataset = model.dataset(examples, targets, batch_size=4, shuffle=True, seed=3)
    for rows, (_, labels) in zip(plan, dataset.as_numpy_iterator(), strict=True):
        np.testing.assert_array_equal(labels, targets[rows])


def test_sizes_of_batches(model, windows, monkeypatch):
    monkeypatch.setattr(type(model), "examples", lambda *_: windows)

    def shapes(**kwargs):
        """The batches that `fit` gives to Keras."""
        seen = []
        monkeypatch.setattr(keras.Model, "fit", lambda self, x, **_: seen.extend(x))
        model.fit(X, Y, **kwargs)
        return [inputs["token_ids"].shape for inputs, _ in seen]

    number = len(windows[0])
    found = shapes()
    assert found[0][0] == min(WindowBatching.training_rows, number)
    assert sum(rows for rows, _ in found) == number
    assert {rows for rows, _ in shapes(batch_size=3)} <= {3, number % 3}
    found = shapes(batch_tokens=48)
    assert all(rows * length <= 48 for rows, length in found)
    assert sum(rows for rows, _ in found) == number
    lengths = [length for _, length in shapes(batch_size=3, shuffle=False)]
    assert lengths == sorted(lengths, reverse=True)


# --- every way in ----------------------------------------------------------------------------


def test_forms_of_evaluate(model, windows, monkeypatch):
    monkeypatch.setattr(type(model), "examples", lambda *_: windows)
    expected = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert sorted(expected) == ["loss", "span_accuracy"]
    examples, targets = windows
    dataset = model.dataset(examples, targets, batch_size=4)
    ready = next(iter(model.dataset(examples, targets, batch_size=len(examples))))
    as_dict = {"question": QUESTIONS, "context": CONTEXTS}
    for x, y in ((as_dict, Y), (dataset, None), ready):
        found = model.evaluate(x, y, verbose=0, return_dict=True)
        assert found == pytest.approx(expected, rel=1e-4)
    one_a_batch = model.evaluate(as_dict, Y, 1, verbose=0, return_dict=True)
    assert one_a_batch == pytest.approx(expected, rel=1e-4)


def test_fit_with_held_out_texts_and_ready_batches():
    model, x, y = small_question_answerer(), (QUESTIONS[:3], CONTEXTS[:3]), Y[:3]
    model.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    history = model.fit(x, y, epochs=2, validation_data=(x, y), verbose=0).history
    assert sorted(history) == ["loss", "span_accuracy", "val_loss", "val_span_accuracy"]
    assert history["loss"][1] < history["loss"][0]
    examples, targets = model.examples(model.read_inputs(x), y)
    final = model.evaluate(model.dataset(examples, targets), verbose=0, return_dict=True)
    assert history["val_loss"][1] == pytest.approx(final["loss"], rel=1e-5)
    dataset = model.dataset(examples, targets, batch_size=4)
    inputs, labels = next(iter(dataset))
    for held_out in (dataset, (inputs, labels, np.ones(4, "float32"))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            history = model.fit(dataset, validation_data=held_out, verbose=0).history
        assert np.isfinite(history["val_loss"]).all()
    message = "`validation_data` of texts must be (x, y). Received: 3 entries; such texts"
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit(dataset, validation_data=(x, y, np.ones(3)), verbose=0)
    assert np.isfinite(model.fit(inputs, labels, batch_size=2, verbose=0).history["loss"]).all()


def test_the_seed_decides_the_order(model, windows, monkeypatch):
    monkeypatch.setattr(type(model), "examples", lambda *_: windows)

    def order(seed):
        seen = []
        monkeypatch.setattr(keras.Model, "fit", lambda self, x, **_: seen.extend(x))
        model.fit(X, Y, batch_size=4, seed=seed, verbose=0)
        return [inputs["token_ids"].numpy().tolist() for inputs, _ in seen]

    first, again, other = order(1), order(1), order(2)
    assert first == again != other


def test_no_xla_unless_it_is_wanted():
    model = small_question_answerer()
    model.compile()
    assert model.jit_compile is False
    model.compile("sgd", jit_compile=True)
    assert model.jit_compile is True


@pytest.mark.parametrize("way", ["fit", "evaluate"])
@pytest.mark.parametrize(
    "x, y, message",
    [
        (X, None, "`y` must be given with texts. Received: y=None"),
        (X, Y[:2], "`y` must have one entry a text. Received: 2 for 12 texts"),
        (([], []), [], "`x` must hold at least one text. Received: none"),
        (
            X,
            [[("nowhere", 0)]] + Y[1:],
            "`y[0]` must hold answers that stand in the context at their start.",
        ),
    ],
)
def test_wrong_data(model, way, x, y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        getattr(model, way)(x, y, verbose=0)


def test_what_a_subclass_must_say():
    class Nothing(TaskModel):
        batching_type = WindowBatching

    with pytest.raises(NotImplementedError, match="Nothing must say what its texts are"):
        Nothing().read_inputs([])
    with pytest.raises(NotImplementedError, match="Nothing must say what its targets are"):
        Nothing().examples([], [])


def test_the_question_is_part_of_every_window(model, windows):
    examples, _ = windows
    for number, row in enumerate(examples.row.tolist()):
        asked = tokens_of(QUESTIONS[row]).ids[:6]
        start = examples.packed.starts[number]
        assert examples.packed.token_ids[start + 1 : start + 1 + len(asked)].tolist() == asked
