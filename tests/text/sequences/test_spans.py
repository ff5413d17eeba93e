"""Spans against all spans of all windows, counted out one by one in double precision."""

import math
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.sequences import spans as cutting
from kbert.text.sequences.spans import (
    NO_SPAN,
    RequestSpans,
    WindowSpans,
    cut_spans,
    is_span,
    request_spans,
    window_spans,
)
from tests.small_pipelines import TOKENIZER
from tests.text.window_reference import Window, owned_by_window, windows_of

Span = tuple[float, int, int]  # score, first and last context token


class Case(NamedTuple):
    """Windows of some requests, with random logits."""

    rows: int
    windows: list[Window]
    owned: list[list[int]]
    logits: np.ndarray  # (W, T, 2)
    position: np.ndarray  # (W, T)
    longest: int
    count: int

    def window_spans(self) -> WindowSpans:
        cells = [[p in owned for p in row] for row, owned in zip(self.position, self.owned)]
        return window_spans(
            tf.constant(self.logits),
            tf.constant(self.position),
            tf.constant(cells),
            self.longest,
            self.count,
        )

    def request_spans(self) -> RequestSpans:
        row = tf.constant([window.row for window in self.windows])
        return request_spans(self.window_spans(), row, tf.constant(self.rows), self.count)

    def every_span(self, number: int) -> list[Span]:
        """All spans of a window, best first."""
        cell = {int(p): i for i, p in enumerate(self.position[number]) if p >= 0}
        start, end = self.logits[number].astype("float64").T
        found = []
        for first in self.owned[number]:
            for last in range(first, first + self.longest):
                if last in cell:
                    found.append((start[cell[first]] + end[cell[last]], first, last))
        return sorted(found, reverse=True)

    def null(self, number: int) -> float:
        """The score of no answer: both logits of [CLS], the first cell."""
        return float(self.logits[number, 0].astype("float64").sum())


def made(tokens: list[int], seed: int, longest: int, count: int, shuffled: bool = True) -> Case:
    """Contexts of so many tokens in windows of 6 that share 2, after [CLS] and one token more."""
    windows, owned = [], []
    for row, length in enumerate(tokens):
        of_row = windows_of(row, length, 6, 4)
        windows += of_row
        owned += owned_by_window(of_row)
    draw = np.random.default_rng(seed)
    if shuffled:
        order = draw.permutation(len(windows))
        windows, owned = [windows[i] for i in order], [owned[i] for i in order]
    position = np.full((len(windows), 9), -1, "int32")
    for number, window in enumerate(windows):
        position[number, 2 : 2 + window.size] = list(window.tokens)
    logits = draw.normal(0.0, 3.0, (len(windows), 9, 2)).astype("float32")
    return Case(len(tokens), windows, owned, logits, position, longest, count)


cases = st.builds(
    made,
    st.lists(st.integers(0, 15), min_size=1, max_size=4),
    st.integers(0, 10**6),
    st.integers(1, 8),
    st.integers(1, 6),
)


def log_sum(scores: list[float]) -> float:
    return math.log(math.fsum(math.exp(score) for score in scores))


def check_best(score: np.ndarray, first: np.ndarray, last: np.ndarray, every: list[Span]) -> None:
    """The best ones, in order; places are those of a span of that score."""
    kept = every[: len(score)]
    np.testing.assert_allclose(score[: len(kept)], [s for s, _, _ in kept], atol=1e-4)
    assert (score[len(kept) :] <= NO_SPAN / 2).all()
    by_place = {(a, b): s for s, a, b in every}
    places = list(zip(first.tolist(), last.tolist()))
    assert len(set(places[: len(kept)])) == len(kept)
    for found, place in zip(score, places[: len(kept)]):
        assert by_place[place] == pytest.approx(float(found), abs=1e-4)
    assert places[len(kept) :] == [(0, 0)] * (len(score) - len(kept))


@given(cases)
def test_spans_of_windows(case: Case) -> None:
    found = WindowSpans(*(column.numpy() for column in case.window_spans()))
    for number in range(len(case.windows)):
        every = case.every_span(number)
        check_best(found.score[number], found.first[number], found.last[number], every)
        assert found.null[number] == pytest.approx(case.null(number), abs=1e-4)
        if every:
            total = log_sum([score for score, _, _ in every])
            assert found.total[number] == pytest.approx(total, abs=1e-4)
        else:
            assert found.total[number] < NO_SPAN / 2


@given(cases)
def test_spans_of_requests(case: Case) -> None:
    found = RequestSpans(*(column.numpy() for column in case.request_spans()))
    for row in range(case.rows):
        own = [number for number, window in enumerate(case.windows) if window.row == row]
        every = sorted((span for n in own for span in case.every_span(n)), reverse=True)
        # Each start is owned by one window, so no span comes twice.
        assert len({span[1:] for span in every}) == len(every)
        check_best(found.score[row], found.first[row], found.last[row], every)
        null = min(case.null(number) for number in own)
        assert found.null[row] == pytest.approx(null, abs=1e-4)
        total = log_sum([*(score for score, _, _ in every), null])
        assert found.total[row] == pytest.approx(total, abs=1e-4)
        expected = [math.exp(score - total) for score, _, _ in every[: case.count]]
        expected += [0.0] * (case.count - len(expected))
        np.testing.assert_allclose(found.probability[row], expected, atol=1e-5)


def test_all_probabilities_and_that_of_no_answer_sum_to_one() -> None:
    found = made([9], 3, 4, 40).request_spans()  # 9 starts with at most 4 ends each
    nothing = tf.exp(found.null - found.total)
    assert float(tf.reduce_sum(found.probability) + nothing[0]) == pytest.approx(1.0, abs=1e-5)
    assert 20 < int(tf.reduce_sum(tf.cast(is_span(found.score), tf.int32))) < 40


def test_the_order_of_the_windows_does_not_matter() -> None:
    case = made([15, 0, 7], 5, 4, 3, shuffled=False)
    spans = case.window_spans()
    row = np.array([window.row for window in case.windows], "int32")
    order = np.random.default_rng(0).permutation(len(row))
    one = request_spans(spans, tf.constant(row), tf.constant(3), 3)
    other = request_spans(
        WindowSpans(*(tf.gather(column, order) for column in spans)),
        tf.constant(row[order]),
        tf.constant(3),
        3,
    )
    for column, again in zip(one, other, strict=True):
        np.testing.assert_allclose(column, again, rtol=1e-6)


def test_by_hand() -> None:
    """Three tokens, of which the window owns the first two; spans of at most two tokens."""
    logits = np.zeros((1, 5, 2), "float32")
    logits[0, :, 0] = [0.5, 1.0, 2.0, 9.0, 9.0]  # the last cell is [SEP]
    logits[0, :, 1] = [0.25, 9.0, 0.0, 1.0, 9.0]
    position, owned = [[-1, 0, 1, 2, -1]], [[False, True, True, False, False]]
    spans = window_spans(tf.constant(logits), tf.constant(position), tf.constant(owned), 2, 4)
    # (0,0) 10; (0,1) 1; (1,1) 2; (1,2) 3
    assert spans.score.numpy().tolist() == [[10.0, 3.0, 2.0, 1.0]]
    assert spans.first.numpy().tolist() == [[0, 1, 1, 0]]
    assert spans.last.numpy().tolist() == [[0, 2, 1, 1]]
    assert spans.null.numpy().tolist() == [0.75]
    assert float(spans.total[0]) == pytest.approx(log_sum([10, 3, 2, 1]), abs=1e-5)


def test_large_logits_stay_finite() -> None:
    case = made([9, 0], 1, 4, 3, shuffled=False)
    case.logits[:] *= 1e3
    found = case.request_spans()
    for column in found:
        assert np.isfinite(column.numpy()).all()
    assert (found.probability.numpy() >= 0).all() and (found.probability.numpy() <= 1).all()


def test_no_requests() -> None:
    floats, numbers = tf.zeros((0, 2)), tf.zeros((0, 2), tf.int32)
    spans = WindowSpans(floats, numbers, numbers, tf.zeros((0,)), tf.zeros((0,)))
    found = request_spans(spans, tf.zeros((0,), tf.int32), tf.constant(0), 2)
    assert [tuple(column.shape) for column in found] == [(0, 2)] * 4 + [(0,)] * 2


# --- cut from the text -----------------------------------------------------------------------


def test_cut_by_hand() -> None:
    text = tf.constant(["a né film!", "中x"])
    offsets = TOKENIZER.tokenize_with_offsets(text)
    # Tokens: a | n ##e | film | ! and 中 | x; the accent is stripped, its place is not.
    assert offsets.start.to_list() == [[0, 2, 3, 5, 9], [0, 1]]
    found = cut_spans(
        text,
        offsets,
        tf.constant([[1, 0, 0], [0, 0, 1]]),
        tf.constant([[3, 4, 0], [1, 0, 1]]),
        tf.constant([[True, True, False], [True, False, True]]),
    )
    expected = [["né film", "a né film!", ""], ["中x", "", "x"]]
    assert [[cut.decode() for cut in row] for row in found.text.numpy().tolist()] == expected
    assert found.start.numpy().tolist() == [[2, 0, 0], [0, 0, 1]]
    assert found.end.numpy().tolist() == [[9, 10, 0], [2, 0, 2]]
    assert found.start_byte.numpy().tolist() == [[2, 0, 0], [0, 0, 3]]
    assert found.end_byte.numpy().tolist() == [[10, 11, 0], [4, 0, 4]]


@given(st.lists(st.one_of(st.text(max_size=20), st.binary(max_size=20)), max_size=4), st.data())
def test_cuts_are_where_they_say(texts: list[str | bytes], data: st.DataObject) -> None:
    raw = [t.encode("utf-8", "surrogatepass") if isinstance(t, str) else t for t in texts]
    text = tf.constant(raw, tf.string, shape=(len(raw),))
    offsets = TOKENIZER.tokenize_with_offsets(text)
    first, last, filled = (np.zeros((len(raw), 3), kind) for kind in ("int32", "int32", "bool"))
    for row, tokens in enumerate(offsets.token_ids.row_lengths().numpy()):
        for span in range(data.draw(st.integers(0, 3)) if tokens else 0):
            ends = sorted(data.draw(st.tuples(*[st.integers(0, int(tokens) - 1)] * 2)))
            (first[row, span], last[row, span]), filled[row, span] = ends, True
    copied = data.draw(st.sampled_from([-1, 1 << 20]), "the most bytes to copy")
    with mock.patch.object(cutting, "_COPIED_BYTES", copied):
        found = cut_spans(text, offsets, *map(tf.constant, (first, last, filled)))
    assert all(tuple(column.shape) == (len(raw), 3) for column in found)
    for row, whole in enumerate(raw):
        decoded = whole.decode("utf-8", "replace")
        for span in range(3):
            cut, start, end, start_byte, end_byte = (c.numpy()[row, span] for c in found)
            assert whole[start_byte:end_byte] == cut
            assert decoded[start:end] == cut.decode("utf-8", "replace")
            if filled[row, span]:
                assert cut and start == offsets.start[row].numpy()[first[row, span]]
                assert end == offsets.end[row].numpy()[last[row, span]]
            else:
                assert (cut, start, end, start_byte, end_byte) == (b"", 0, 0, 0, 0)


@pytest.mark.parametrize("copied", [-1, 1 << 20])
def test_no_spans_and_no_rows(copied: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "_COPIED_BYTES", copied)
    for rows in (["a film", ""], []):
        text = tf.constant(rows, tf.string, shape=(len(rows),))
        nothing = tf.zeros((len(rows), 0), tf.int32)
        offsets = TOKENIZER.tokenize_with_offsets(text)
        found = cut_spans(text, offsets, nothing, nothing, tf.zeros((len(rows), 0), tf.bool))
        assert [tuple(column.shape) for column in found] == [(len(rows), 0)] * 5
