"""Requests that meet share a batch in the graph; a bad one among them harms no other."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from kbert.pipelines.signatures import text_specs, token_specs
from kbert.serving.export.export import export
from kbert.serving.export.request_batching import batching_of, can_join
from kbert.serving.export.request_checks import InputLimits
from kbert.serving.loading.exported import LoadedModel
from kbert.serving.loading.session_loader import Session, SessionError
from tests.c_compiler import needs_compiler
from tests.serving.fed_sessions import fed_session


class RowCounter:
    """Tells each text how many rows it was computed with; slow enough for requests to meet."""

    name = "counter"

    def count(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Outputs: rows of the batch, and the length of the text."""
        wide = tf.random.stateless_uniform((400, 400), (1, 2))
        busy = tf.cast(0 * tf.reduce_sum(wide @ wide @ wide), tf.int32)
        length = tf.strings.length(text)
        return {"rows": tf.zeros_like(length) + tf.shape(text)[0] + busy, "length": length}

    def signatures(self) -> dict[str, Any]:
        """One of texts."""
        return {"serving_default": (self.count, text_specs(False))}


@pytest.fixture(scope="module")
def counter_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(RowCounter(), tmp_path_factory.mktemp("counters"), max_batch_size=8)


def text(*rows: str) -> np.ndarray:
    return np.array([row.encode() for row in rows], object)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    with ThreadPoolExecutor(count) as threads:
        list(threads.map(work, range(count), timeout=60))


@pytest.mark.parametrize("way", ["session", "python"])
def test_requests_that_meet_share_a_batch(counter_path: Path, way: str):
    if way == "session":
        ask = fed_session(counter_path)("serving_default")
    else:
        loaded = LoadedModel(counter_path)
        assert loaded.joins_requests

        def ask(**inputs):
            return loaded.run("serving_default", inputs)

    assert ask(text=text("alone"))["rows"].tolist() == [1]
    seen: set[int] = set()
    lengths: list[bool] = []

    def work(number: int) -> None:
        for _ in range(50):
            found = ask(text=text("x" * number, "y"))
            lengths.append(found["length"].tolist() == [number, 1])
            seen.update(found["rows"].tolist())
            if max(seen) > 2:
                return

    in_threads(8, work)
    # Whole requests, of two rows each, and never more than were asked for.
    assert all(lengths) and max(seen) > 2 and seen <= {2, 4, 6, 8}


def test_what_is_large_runs_alone(counter_path: Path):
    ask = fed_session(counter_path)("serving_default")
    found: dict[int, set[int]] = {8: set(), 9: set(), 1: set()}

    def work(number: int) -> None:
        size = (8, 9, 1)[number % 3]
        content = "z" * 5000 if size == 1 else "z"
        for _ in range(5):
            found[size].update(ask(text=text(*[content] * size))["rows"].tolist())

    in_threads(6, work)
    assert found == {8: {8}, 9: {9}, 1: {1}}
    model = LoadedModel(counter_path)
    for rows, alone in ((["z"] * 8, True), (["z" * 5000], True), (["z" * 4096], False)):
        assert model.runs_alone("serving_default", {"text": text(*rows)}) is alone


@needs_compiler
def test_what_is_wrong_is_refused_without_python(exported_path: Path, programs: Path):
    def tokens(ids: Any, segments: Any, lengths: Any) -> dict[str, np.ndarray]:
        arrays = {"token_ids": ids, "segment_ids": segments, "lengths": lengths}
        return {name: np.array(array, np.int32) for name, array in arrays.items()}

    with Session(exported_path, folder=programs) as session:
        for name, inputs, words in (
            ("serving_default", {"text": np.array([["a"]], object)}, "`text` must have the shape"),
            ("tokens", tokens([[-5]], [[0]], [1]), "`token_ids` must be in [0, 66). Received: -5"),
            ("tokens", tokens([[66]], [[0]], [1]), "`token_ids` must be in [0, 66). Received: 66"),
            ("tokens", tokens([[1]], [[7]], [1]), "`segment_ids` must be in [0, 2). Received: 7"),
            ("tokens", tokens([[1]], [[0]], [2]), "`lengths` must be in [1, 1]. Received: 2"),
            ("tokens", tokens([[1]], [[0]], [-1]), "`lengths` must be in [1, 1]. Received: -1"),
            ("tokens", tokens([[1] * 33], [[0] * 33], [1]), "at most 32 tokens a row. Received"),
        ):
            with pytest.raises(SessionError) as caught:
                session.ask(name, inputs)
            assert str(caught.value).startswith("INVALID_ARGUMENT")
            assert words in str(caught.value)
        found = session.ask("serving_default", {"text": text()})
        assert {name: batch.shape for name, batch in found.items()} == {
            **{"label": (0,), "labels": (0, 3), "score": (0,), "scores": (0, 3)},
            "truncated": (0,),
        }


def test_good_requests_among_bad_ones(exported_path: Path, texts: list[str | bytes]):
    """Eight clients, half of what they ask does not fit: each good one gets its own answer."""
    signature = fed_session(exported_path)
    ask = {name: signature(name) for name in ("serving_default", "tokens")}
    rows = np.array([one.encode() if isinstance(one, str) else one for one in texts], object)
    ids = np.random.default_rng(1).integers(5, 60, (len(rows), 20)).astype(np.int32)
    good: list[tuple[str, dict[str, np.ndarray]]] = []
    for i in range(len(rows)):
        one = {"token_ids": ids[i : i + 1, : 1 + i], "lengths": np.array([1 + i // 2], np.int32)}
        good += [
            ("serving_default", {"text": rows[i : i + 1]}),
            ("tokens", {**one, "segment_ids": np.zeros_like(one["token_ids"])}),
        ]
    bad = [
        ("serving_default", {"text": np.array([["a", "b"]], object)}),
        ("serving_default", {"text": np.array(b"a", object)}),
        ("tokens", {**good[1][1], "token_ids": np.array([[-5]], np.int32)}),
        ("tokens", {**good[3][1], "lengths": np.array([99], np.int32)}),
        ("tokens", {**good[3][1], "segment_ids": np.array([7, 7], np.int32)}),
    ]
    expected = [ask[name](**inputs) for name, inputs in good]
    wrong: list[Any] = []

    def work(number: int) -> None:
        draw = random.Random(number)
        for _ in range(12):
            place = draw.randrange(len(good))
            name, inputs = good[place]
            for key, value in ask[name](**inputs).items():
                same = np.allclose if value.dtype.kind == "f" else np.array_equal
                if not same(value, expected[place][key]):
                    wrong.append((name, inputs, key, value))
            name, inputs = draw.choice(bad)
            try:
                wrong.append((name, inputs, ask[name](**inputs)))
            except tf.errors.InvalidArgumentError as error:
                if "must" not in str(error):
                    wrong.append((name, inputs, error))

    in_threads(8, work)
    assert wrong == []


def test_which_requests_can_join():
    assert can_join(text_specs(True), InputLimits())
    # Token rows are padded to the most that the model reads.
    assert can_join(token_specs(), InputLimits(10, 2, 32))
    assert not can_join(token_specs(), InputLimits())
    choices = tf.TensorSpec((None, None), tf.string, name="choices")
    assert not can_join([*text_specs(False), choices], InputLimits(10, 2, 32))
    assert batching_of(0) is None and batching_of(1) is None
    with pytest.raises(ValueError, match="`max_batch_size` must be an integer of at least 0"):
        batching_of(-1)
