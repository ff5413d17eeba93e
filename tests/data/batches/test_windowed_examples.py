"""Windows to train on, against windows cut and laid out one by one."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from kbert.data.batches import windowed_examples
from kbert.data.batches.windowed_examples import WindowedExamples, token_places, window_examples
from kbert.text.sequences.packing import lay_out
from tests.small_pipelines import TEXTS, TOKENIZER, VOCABULARY
from tests.text.window_reference import lay, owned_by_window, windows_of

CLS, SEP = VOCABULARY.cls_id, VOCABULARY.sep_id


@functools.cache
def ids_of(text: str | bytes) -> list[int]:
    encoded = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return TOKENIZER.tokenize(tf.constant([encoded])).to_list()[0]


def laid_out(found: WindowedExamples) -> list[tuple[list[int], list[int]]]:
    """Ids and segments of each window."""
    packed = found.packed
    cells = [slice(s, s + n) for s, n in zip(packed.starts, packed.lengths, strict=True)]
    return [(packed.token_ids[c].tolist(), packed.segment_ids[c].tolist()) for c in cells]


def check(contexts, questions, length: int, stride: int, most: int) -> WindowedExamples:
    """Every column of the windows, against the reference."""
    found = window_examples(TOKENIZER, contexts, questions, length, stride, most)
    expected, columns, is_cut = [], [], []
    for row, context in enumerate(contexts):
        tokens = ids_of(context)
        question = None if questions is None else ids_of(questions[row])[:most]
        asked = 0 if question is None else len(question)
        begin = 1 if question is None else asked + 2
        room = length - asked - (2 if question is None else 3)
        windows = windows_of(row, len(tokens), room, room - stride)
        for window, owned in zip(windows, owned_by_window(windows), strict=True):
            expected.append(lay(question, tokens, window, CLS, SEP)[:2])
            ends = (owned[0], owned[-1] + 1) if owned else (0, 0)
            columns.append((row, window.first, window.size, *ends, begin))
            is_cut.append(question is not None and len(ids_of(questions[row])) > most)
    assert laid_out(found) == expected
    names = ("row", "first", "size", "owned_from", "owned_to", "begin")
    table = np.array(columns, "int32").reshape(-1, len(names))
    for name, column in zip(names, table.T):
        np.testing.assert_array_equal(getattr(found, name), column, err_msg=name)
    assert len(found) == len(expected) == len(found.packed)
    assert found.packed.padding_id == VOCABULARY.padding_id
    assert found.packed.truncated.tolist() == is_cut
    return found


def test_texts_of_all_kinds() -> None:
    check(TEXTS, None, 12, 3, 0)
    check(TEXTS, TEXTS[::-1], 16, 3, 5)


texts = st.text(st.sampled_from("ab é中.\u0301\ud800"), max_size=30)
pairs_of_texts = st.lists(st.tuples(texts, texts), min_size=10, max_size=20)


@settings(max_examples=2)  # each traces four graphs
@given(pairs_of_texts, st.integers(0, 4), st.integers(1, 4))
def test_windows_of_random_texts(pairs, stride: int, most: int) -> None:
    contexts, questions = [c for c, _ in pairs], [q for _, q in pairs]
    check(contexts, questions, 3 + most + stride + 2, stride, most)
    check(contexts, None, 2 + stride + 2, stride, most)


def test_by_hand() -> None:
    """Room for 9 - 3 - 2 = 4 tokens, a step of 3."""
    found = window_examples(TOKENIZER, ["a good bad film !"], ["the film"], 9, 1, 3)
    names = [[VOCABULARY.tokens[i] for i in ids] for ids, _ in laid_out(found)]
    assert names == [
        "[CLS] the film [SEP] a good bad film [SEP]".split(),
        "[CLS] the film [SEP] film ! [SEP]".split(),
    ]
    assert [segments for _, segments in laid_out(found)] == [
        [0, 0, 0, 0, 1, 1, 1, 1, 1],
        [0, 0, 0, 0, 1, 1, 1],
    ]
    # Token 3 is at the edge of both windows: the left one owns it.
    assert (found.owned_from.tolist(), found.owned_to.tolist()) == ([0, 4], [4, 5])
    assert found.begin.tolist() == [4, 4]


def test_equal_contexts_are_tokenized_once() -> None:
    contexts = ["a film", "good", "a film", b"good", "a film"]
    found = check(contexts, ["a", "bad", "the", "a", ""], 12, 1, 4)
    # str and bytes are different texts; a token each for "good".
    assert found.context.tolist() == [0, 1, 0, 2, 0]
    assert np.diff(found.places.splits).tolist() == [2, 1, 1]


def test_windows_are_cut_from_their_own_texts(monkeypatch) -> None:
    """The tokens of all texts, joined again for each call, took a square of their number."""
    given, seen = (TOKENIZER, ["good", "a film", "bad", "good"] * 2, ["bad", "is"] * 4, 8, 2), []
    expected = window_examples(*given)

    def two_at_a_time(columns, function, count, rows_per_call):
        starts = range(0, len(columns[0]), 2)
        found = [function(*(column[i : i + 2] for column in columns)) for i in starts]
        return [np.concatenate(column) for column in zip(*found)]

    def watched(windows, contexts, questions, vocabulary, context_row):
        seen.append((int(contexts.nrows()), int(questions.nrows())))
        return lay_out(windows, contexts, questions, vocabulary, context_row)

    monkeypatch.setattr(windowed_examples, "lay_out", watched)
    monkeypatch.setattr(windowed_examples, "mapped_columns", two_at_a_time)
    found = window_examples(*given)
    assert seen == [(2, 2)] * 4  # of three different contexts and eight questions
    for name in ("token_ids", "segment_ids", "lengths"):
        np.testing.assert_array_equal(getattr(found.packed, name), getattr(expected.packed, name))


def test_more_texts_than_are_tokenized_at_a_time() -> None:
    contexts = ["film " + " " * i + "good" for i in range(600)]
    found = window_examples(TOKENIZER, contexts, None, 7, 1)
    names = ("[CLS]", "film", "good", "[SEP]")
    row = [VOCABULARY.id_of(token) for token in names]
    assert found.packed.token_ids.reshape(600, 4).tolist() == [row] * 600
    assert found.row.tolist() == list(range(600))
    for i in (0, 255, 256, 599):
        assert found.places.of(i)[0].tolist() == [0, 5 + i]


def test_no_texts() -> None:
    for questions in (None, []):
        found = window_examples(TOKENIZER, [], questions, 9, 1, 3)
        assert len(found) == len(found.packed) == found.packed.tokens == 0
        assert found.context.shape == (0,) and found.places.splits.tolist() == [0]


@settings(max_examples=3)  # each traces a graph
@given(st.lists(st.text(max_size=20), min_size=10, max_size=40))
def test_places_cut_the_tokens(rows: list[str]) -> None:
    places = token_places(TOKENIZER, rows)
    assert places.splits.tolist()[0] == 0 and len(places.splits) == len(rows) + 1
    assert len(places.token_ids) == len(places.start) == len(places.end) == places.splits[-1]
    for number, text in enumerate(rows):
        starts, ends = places.of(number)
        assert len(starts) == len(ids_of(text))
        for start, end in zip(starts, ends, strict=True):
            assert 0 <= start < end <= len(text)


def test_places_by_hand() -> None:
    places = token_places(TOKENIZER, ["né film", "", b"\xff a"])
    tokens = [VOCABULARY.tokens[i] for i in places.token_ids]
    assert tokens == ["n", "##e", "film", "a"]
    assert places.splits.tolist() == [0, 3, 3, 4]
    assert [list(map(int, column)) for column in places.of(0)] == [[0, 1, 3], [1, 2, 7]]
    assert [list(map(int, column)) for column in places.of(2)] == [[2], [3]]


def test_wrong_arguments() -> None:
    message = "`questions` must be as many as `contexts`. Received: 1 and 2"
    with pytest.raises(ValueError, match=message):
        window_examples(TOKENIZER, ["a", "b"], ["a"], 9, 1, 3)
    with pytest.raises(TypeError, match="`texts` must hold str or bytes only. Received: None"):
        window_examples(TOKENIZER, ["a", None], None, 9, 1)
