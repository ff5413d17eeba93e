"""Texts as examples without padding, and some of them."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.data.batches.dataset import batched_dataset
from kbert.data.batches.packed_examples import PackedExamples, mapped_columns, pack_examples
from kbert.text.wordpiece.wordpiece import WordPiece
from tests.small_pipelines import TEXTS, TOKENIZER, VOCABULARY, random_texts

IDS = {token: VOCABULARY.id_of(token) for token in VOCABULARY.tokens}


@pytest.fixture
def packed() -> PackedExamples:
    """Examples of 2, 3 and 1 tokens."""
    return PackedExamples(
        np.array([5, 6, 7, 8, 9, 4], "int32"),
        np.array([0, 0, 0, 1, 1, 0], "int32"),
        np.array([0, 2, 5]),
        np.array([2, 3, 1], "int32"),
        np.array([False, True, False]),
    )


def test_select(packed) -> None:
    some = packed.select(np.array([1, 2]))
    assert len(some) == 2 and some.tokens == 4
    assert packed.tokens == 6
    assert some.truncated.tolist() == [True, False]


def test_batches_of_some(packed) -> None:
    """Tokens, and targets of tokens, are those of the examples that were chosen."""
    some = packed.select(np.array([1, 2]))
    labels = np.array([10, 11, 12, 13, 14, 15], "int32")
    ((inputs, targets),) = batched_dataset(some, token_labels=labels)
    assert inputs["token_ids"].numpy().tolist() == [[7, 8, 9], [4, 0, 0]]
    assert inputs["segment_ids"].numpy().tolist() == [[0, 1, 1], [0, 0, 0]]
    assert targets.numpy().tolist() == [[12, 13, 14], [15, -1, -1]]


def example(packed, i):
    cells = slice(packed.starts[i], packed.starts[i] + packed.lengths[i])
    return packed.token_ids[cells].tolist(), packed.segment_ids[cells].tolist()


def test_packing_by_hand():
    packed = pack_examples(TOKENIZER, ["a good film", "", "goodness!"], None, 8)
    cls, sep = IDS["[CLS]"], IDS["[SEP]"]
    rows = [
        [cls, IDS["a"], IDS["good"], IDS["film"], sep],
        [cls, sep],
        [cls, IDS["good"], IDS["##ness"], IDS["!"], sep],
    ]
    assert [example(packed, i)[0] for i in range(3)] == rows
    assert packed.lengths.tolist() == [5, 2, 5] and packed.starts.tolist() == [0, 5, 7]
    assert len(packed) == 3 and packed.tokens == 12
    assert not packed.segment_ids.any() and not packed.truncated.any()
    assert packed.padding_id == IDS["[PAD]"]


def test_packing_pairs_by_hand():
    packed = pack_examples(TOKENIZER, ["a film", "very very good"], ["good", "bad film"], 7)
    cls, sep = IDS["[CLS]"], IDS["[SEP]"]
    first = [cls, IDS["a"], IDS["film"], sep, IDS["good"], sep]
    assert example(packed, 0) == (first, [0, 0, 0, 0, 1, 1])
    # The longer text gives way: 3 + 2 tokens in the 4 places left.
    second = [cls, IDS["very"], IDS["very"], sep, IDS["bad"], IDS["film"], sep]
    assert example(packed, 1) == (second, [0, 0, 0, 0, 1, 1, 1])
    assert packed.truncated.tolist() == [False, True]


def test_packing_in_many_calls_keeps_the_order():
    # More texts than are tokenized at once.
    texts = random_texts(1200, longest=6)
    packed = pack_examples(TOKENIZER, texts, None, 16)
    assert len(packed) == 1200
    for i in (0, 511, 512, 1023, 1024, 1199):
        assert example(packed, i) == example(pack_examples(TOKENIZER, [texts[i]], None, 16), 0)


def test_any_number_of_texts_has_one_graph(monkeypatch):
    """One for each number was traced for each request of another size, and kept."""
    tokenizer, traced = WordPiece(VOCABULARY), []
    read = tokenizer.tokenize
    monkeypatch.setattr(tokenizer, "tokenize", lambda text: (traced.append(text), read(text))[1])
    for rows in (1, 2, 3):
        pack_examples(tokenizer, ["good"] * rows, None, 16)
    assert len(traced) == 1
    for rows in (1, 2):
        pack_examples(tokenizer, ["good"] * rows, ["bad"] * rows, 16)
        pack_examples(tokenizer, ["good"] * rows, None, 16)
    assert len(traced) == 3  # both texts of a pair, once


@pytest.mark.parametrize("rows, traced", [(7, False), (3, True)])
def test_what_is_one_call_is_not_traced(rows, traced):
    seen = []

    def double(numbers, texts):
        seen.append(not tf.executing_eagerly())
        return 2 * numbers, texts

    columns = (np.arange(7), np.array([b"a", b"b", b"c", b"d", b"e", b"f", b"g"]))
    tensors = [tf.constant(column) for column in columns]
    numbers, texts = mapped_columns(tensors, double, 2, rows)
    assert seen == [traced]
    assert numbers.tolist() == [0, 2, 4, 6, 8, 10, 12] and b"".join(texts) == b"abcdefg"


def test_any_text_can_be_packed():
    packed = pack_examples(TOKENIZER, TEXTS, list(reversed(TEXTS)), 24)
    assert len(packed) == len(TEXTS) and packed.lengths.max() <= 24
    assert packed.lengths.min() >= 3 and packed.truncated.any()


def test_lone_surrogates_are_dropped_like_broken_bytes():
    # "\ud800" cannot be written in UTF-8 and becomes U+FFFD, as bytes do that are not UTF-8; the
    # tokenizer drops it.
    packed = pack_examples(TOKENIZER, ["good\ud800film", b"good\xed\xa0\x80film", "goodfilm"])
    assert example(packed, 0) == example(packed, 1) == example(packed, 2)


def test_a_megabyte_of_text():
    packed = pack_examples(TOKENIZER, ["film " * 200_000, "x" * 1_000_000], None, 16)
    assert packed.lengths.tolist() == [16, 3] and packed.truncated.tolist() == [True, False]
    assert example(packed, 1)[0] == [IDS["[CLS]"], IDS["[UNK]"], IDS["[SEP]"]]


def test_no_texts():
    packed = pack_examples(TOKENIZER, [])
    assert len(packed) == 0 and packed.tokens == 0
    assert list(batched_dataset(packed, np.zeros(0, "int32"))) == []
    assert list(batched_dataset(packed, shuffle=True, batch_size=None, batch_tokens=9)) == []


def test_pairs_of_different_length():
    message = "`text_b` must be as long as `text_a`. Received: 2 and 1 texts"
    with pytest.raises(ValueError, match=message):
        pack_examples(TOKENIZER, ["a", "b"], ["a"])


def test_what_is_no_text_is_named():
    message = "`texts` must hold str or bytes only. Received: None at index 1"
    with pytest.raises(TypeError, match=message):
        pack_examples(TOKENIZER, ["a", None])
