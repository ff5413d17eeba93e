"""Models that read, exported: the same answers in Python, from the SavedModel, and without Python.

Batches are the same everywhere, so answers and places must be equal to the letter.
"""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from kbert.data.batches.packed_examples import text_tensor
from kbert.pipelines.task_model import TaskModel
from kbert.serving.export.export import export
from kbert.serving.loading.exported import Exported, load_export
from kbert.serving.loading.session_loader import Session
from tests.c_compiler import needs_compiler
from tests.pipelines.awkward_texts import awkward_texts
from tests.serving.hostile_strings import FAMILIES, asked, hostile_strings
from tests.small_pipelines import (
    TAGS,
    TEXTS,
    random_texts,
    small_entity_recognizer,
    small_question_answerer,
    small_span_tagger,
)

CONTEXTS = [*TEXTS, *random_texts(5, seed=4, longest=60), "e\u0301 שלום \u200b中"]
QUESTIONS = ["a film?", "", "very very very bad film or good", b"\xff"] * 5
INPUTS = {"question": QUESTIONS[: len(CONTEXTS)], "context": CONTEXTS}
SPANS = ("answer", "score", "start", "end")
TASKS = {
    "question_answerer": (
        small_question_answerer,
        {"null_threshold": 0.0, "nbest": 3},
        {
            **{name: (None,) for name in (*SPANS, "start_byte", "end_byte", "null_score")},
            **{name: (None,) for name in ("has_answer", "truncated")},
            **{f"nbest_{name}": (None, 3) for name in SPANS},
        },
    ),
    "span_tagger": (
        small_span_tagger,
        {},
        {**{f"{name}s": (None, None) for name in SPANS}, "count": (None,)},
    ),
    "entity_recognizer": (
        small_entity_recognizer,
        {},
        {
            **{name: (None, None) for name in ("entity", "label", *SPANS[1:])},
            **{name: (None, None) for name in ("start_byte", "end_byte")},
            "count": (None,),
        },
    ),
}


class Case:
    """A model, its export, and the inputs of all its texts."""

    def __init__(self, name: str, base: Path) -> None:
        made, options, self.outputs = TASKS[name]
        self.model: TaskModel = made(**options)
        self.path = export(self.model, base, max_batch_size=1)
        self.exported: Exported = load_export(self.path)
        self.asks = name != "entity_recognizer"

    def inputs(self, rows: slice) -> dict[str, list]:
        if not self.asks:
            return {"text": CONTEXTS[rows]}
        return {name: column[rows] for name, column in INPUTS.items()}


@pytest.fixture(scope="module", params=list(TASKS))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(request.param, tmp_path_factory.mktemp("exports"))


def agree(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert sorted(found) == sorted(expected)
    for name, values in expected.items():
        one, other = np.asarray(found[name]), np.asarray(values)
        assert one.shape == other.shape and one.dtype.kind == other.dtype.kind, name
        if other.dtype == np.float32:  # another program adds in another order
            np.testing.assert_allclose(one, other, atol=1e-5, err_msg=name)
        else:
            assert one.tolist() == other.tolist(), name


def test_the_signature(case: Case) -> None:
    signatures = case.exported.metadata["signatures"]
    called = signatures["serving_default"]
    names = ["question", "context"] if case.asks else ["text"]
    assert called["inputs"] == [{"name": n, "dtype": "string", "shape": [None]} for n in names]
    found = {tensor["name"]: tuple(tensor["shape"]) for tensor in called["outputs"]}
    assert found == case.outputs
    assert ("words" in signatures) is not case.asks
    assert set(signatures) <= {"serving_default", "words"}
    name = type(case.model).__name__
    assert case.exported.metadata["class"] == name
    if not case.asks:
        assert case.exported.labels == list(TAGS)


def test_the_export_answers_as_the_model_does(case: Case) -> None:
    inputs = case.inputs(slice(None))
    found = case.exported.run(inputs)
    function, _ = case.model.signatures()["serving_default"]
    agree(found, function(*map(text_tensor, inputs.values())))  # without the time to trace it
    if case.asks and "has_answer" in found:
        assert 0 < found["has_answer"].sum() < len(CONTEXTS)  # else this would say little
    else:
        assert found["count"].max() > 3


@needs_compiler
def test_it_answers_without_python(case: Case, programs: Path) -> None:
    with Session(case.path, folder=programs) as session:
        for rows in (slice(None), slice(0, 1), slice(0, 0), slice(1, 3)):
            inputs = case.inputs(rows)
            agree(session.run("serving_default", inputs), case.exported.run(inputs))


@needs_compiler
@pytest.mark.slow
def test_given_words_are_tagged_without_python(case: Case, programs: Path) -> None:
    if case.asks:
        return
    with Session(case.path, folder=programs) as session:
        for rows in (slice(None), slice(0, 1), slice(0, 0), slice(1, 3)):
            inputs = case.inputs(rows)
            agree(session.run("words", inputs), case.exported.run(inputs, "words"))


def test_no_rows(case: Case) -> None:
    found = case.exported.run(case.inputs(slice(0, 0)))
    shapes = {name: values.shape for name, values in found.items()}
    expected = {name: (0, *(n or 0 for n in s[1:])) for name, s in case.outputs.items()}
    assert shapes == expected
    assert len(case.exported.predict(*[[] for _ in case.inputs(slice(0, 0))])) == len(expected)


def settled(scores: np.ndarray) -> np.ndarray:
    """Which of the n best do not stand level with another: text that repeats itself has such.

    Their order is then decided by the last bit, which the company in a batch may change. The last
    one may be level with one that was not kept.
    """
    apart = np.append(scores[:-1] - scores[1:] > 1e-5, False)
    return apart & np.append(True, apart[:-1])


def test_batches_of_any_company_answer_alike(case: Case) -> None:
    together = case.exported.run(case.inputs(slice(None)))
    compared = 0
    for i in range(0, len(CONTEXTS), 5):
        alone = case.exported.run(case.inputs(slice(i, i + 1)))
        for name, values in alone.items():
            other = together[name][i : i + 1]
            if name.startswith("nbest_") and values.dtype != np.float32:
                clear = settled(together["nbest_score"][i])
                assert values[0][clear].tolist() == other[0][clear].tolist()
                compared += clear.sum()
            elif values.dtype == np.float32:
                wide = other[:, : values.shape[1]] if values.ndim == 2 else other
                np.testing.assert_allclose(values, wide, atol=1e-5)
            elif values.ndim == 1:
                assert values[0] == other[0]
            else:  # padded to the most of the request
                assert values[0].tolist() == other[0].tolist()[: values.shape[1]]
                assert not any(other[0].tolist()[values.shape[1] :])
    assert "nbest_score" not in together or compared > 10


def test_given_words(case: Case) -> None:
    if case.asks:
        return
    texts = random_texts(6, seed=9)
    expected = case.model.tag(tf.constant(texts))  # without the time that tracing takes
    found = case.exported.run({"text": texts}, "words")
    agree(found, {name: value.numpy() for name, value in expected.items()})


def test_weights_are_stored_once(case: Case) -> None:
    stored = tf.train.list_variables(str(case.path / "variables" / "variables"))
    arrays = [shape for name, shape in stored if name.endswith("VARIABLE_VALUE")]
    unused = sum(int(np.prod(v.shape)) for v in case.model.encoder.pooler.weights)
    found = sum(int(np.prod(shape)) for shape in arrays)
    assert case.model.count_params() - unused <= found <= case.model.count_params()


@settings(max_examples=25, deadline=None)
@given(rows=st.lists(st.tuples(awkward_texts, awkward_texts), min_size=1, max_size=6))
def test_awkward_texts(case: Case, rows: list[tuple]) -> None:
    encoded = [tuple(t.encode() if isinstance(t, str) else t for t in row) for row in rows]
    assert asked(case.exported, encoded) == []


def test_all_families_of_hostile_strings(case: Case) -> None:
    texts = list(hostile_strings(10 * len(FAMILIES), seed=5))
    assert asked(case.exported, list(zip(texts[::-1], texts))) == []
