import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.sequences.packing import PackedText, pack
from kbert.text.vocabulary import ROBERTA_TOKENS, Vocabulary

# [PAD]=0 [UNK]=1 [CLS]=2 [SEP]=3, as the expected rows below were written by hand.
VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghij"])


def ragged(rows: list[list[int]]) -> tf.RaggedTensor:
    return tf.RaggedTensor.from_row_lengths(
        tf.constant([number for row in rows for number in row], tf.int32),
        tf.constant([len(row) for row in rows], tf.int64),
    )


def test_one_segment_by_hand() -> None:
    packed = pack([ragged([[5, 6, 7], [8], []])], VOCABULARY, 8)
    np.testing.assert_array_equal(
        packed.token_ids, [[2, 5, 6, 7, 3], [2, 8, 3, 0, 0], [2, 3, 0, 0, 0]]
    )
    np.testing.assert_array_equal(packed.segment_ids, np.zeros((3, 5)))
    np.testing.assert_array_equal(
        packed.padding_mask, [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]]
    )
    np.testing.assert_array_equal(packed.lengths, [5, 3, 2])
    np.testing.assert_array_equal(packed.truncated, [False, False, False])
    assert [part.dtype for part in packed] == [tf.int32, tf.int32, tf.bool, tf.int32, tf.bool]


def test_two_segments_by_hand() -> None:
    packed = pack([ragged([[5, 6], [5]]), ragged([[7, 8, 9], []])], VOCABULARY, 16)
    np.testing.assert_array_equal(
        packed.token_ids, [[2, 5, 6, 3, 7, 8, 9, 3], [2, 5, 3, 3, 0, 0, 0, 0]]
    )
    np.testing.assert_array_equal(
        packed.segment_ids, [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 0, 0, 0, 0]]
    )
    np.testing.assert_array_equal(packed.lengths, [8, 4])


def test_equal_texts_lose_the_second_ones_token_first() -> None:
    """Room for 5 of 3 + 3: `_truncate_seq_pair` pops from b when the two are equally long."""
    packed = pack([ragged([[5, 6, 7]]), ragged([[8, 9, 10]])], VOCABULARY, 8)
    np.testing.assert_array_equal(packed.token_ids, [[2, 5, 6, 7, 3, 8, 9, 3]])
    np.testing.assert_array_equal(packed.truncated, [True])


def test_fixed_length_and_truncation_by_hand() -> None:
    packed = pack([ragged([[5, 6, 7, 8], [9]])], VOCABULARY, 5, fixed_length=True)
    np.testing.assert_array_equal(packed.token_ids, [[2, 5, 6, 7, 3], [2, 9, 3, 0, 0]])
    np.testing.assert_array_equal(packed.truncated, [True, False])


def truncate_seq_pair(first: list[int], second: list[int], room: int) -> None:
    """The loop of google-research/bert `run_classifier.py`, written down from its description."""
    while len(first) + len(second) > room:
        longer = first if len(first) > len(second) else second
        longer.pop()


rows_of_pairs = st.lists(
    st.tuples(
        st.lists(st.integers(4, 13), max_size=9),
        st.lists(st.integers(4, 13), max_size=9),
    ),
    max_size=5,
)


@given(rows_of_pairs, st.integers(3, 20), st.booleans())
def test_pairs_are_cut_as_the_published_loop_cuts(
    rows: list[tuple[list[int], list[int]]], length: int, fixed: bool
) -> None:
    firsts, seconds = [row[0] for row in rows], [row[1] for row in rows]
    packed = pack([ragged(firsts), ragged(seconds)], VOCABULARY, length, fixed_length=fixed)
    width = packed.token_ids.shape[1]
    if fixed:
        assert width == length
    else:
        assert width == max([len(a) + len(b) + 3 for a, b in rows if len(a) + len(b) + 3 <= length]
                            + [length for a, b in rows if len(a) + len(b) + 3 > length] + [3])
    for index, (first, second) in enumerate(rows):
        a, b = list(first), list(second)
        truncate_seq_pair(a, b, length - 3)
        sequence = [2, *a, 3, *b, 3]
        padding = [0] * (width - len(sequence))
        assert packed.token_ids[index].numpy().tolist() == sequence + padding
        segments = [0] * (len(a) + 2) + [1] * (len(b) + 1) + padding
        assert packed.segment_ids[index].numpy().tolist() == segments
        assert int(packed.lengths[index]) == len(sequence)
        assert packed.padding_mask[index].numpy().sum() == len(sequence)
        assert bool(packed.truncated[index]) == (len(first) + len(second) + 3 > length)


@pytest.mark.parametrize(("segments", "width"), [(1, 2), (2, 3)])
def test_no_rows(segments: int, width: int) -> None:
    packed = pack([ragged([])] * segments, VOCABULARY, 8)
    assert packed.token_ids.shape == (0, width)
    assert packed.lengths.shape == (0,)
    assert pack([ragged([])] * segments, VOCABULARY, 8, fixed_length=True).token_ids.shape == (0, 8)


def test_only_special_tokens_fit() -> None:
    packed = pack([ragged([[5, 6]]), ragged([[7]])], VOCABULARY, 3)
    np.testing.assert_array_equal(packed.token_ids, [[2, 3, 3]])
    np.testing.assert_array_equal(packed.truncated, [True])


def test_fixed_length_is_static_in_a_graph() -> None:
    @tf.function(autograph=False, input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
    def packed(ids: tf.RaggedTensor) -> PackedText:
        return pack([ids], VOCABULARY, 8, fixed_length=True)

    outputs = packed.get_concrete_function().structured_outputs
    assert outputs.token_ids.shape.as_list() == [None, 8]
    assert outputs.padding_mask.shape.as_list() == [None, 8]
    np.testing.assert_array_equal(packed(ragged([[5]])).token_ids, [[2, 5, 3, 0, 0, 0, 0, 0]])


def test_errors_say_what_must_be() -> None:
    one = ragged([[5]])
    with pytest.raises(ValueError, match="must be at least 2, .* Received: max_sequence_length=1"):
        pack([one], VOCABULARY, 1)
    with pytest.raises(ValueError, match="must be at least 3, .* Received: max_sequence_length=2"):
        pack([one, one], VOCABULARY, 2)
    with pytest.raises(ValueError, match="`segments` must be one or two. Received: 3 segments"):
        pack([one, one, one], VOCABULARY, 9)


ROBERTA = Vocabulary(["<s>", "<pad>", "</s>", "<unk>", *"abcdefghij"], ROBERTA_TOKENS)


@given(rows_of_pairs, st.integers(4, 20))
def test_two_separators_and_no_segments(
    rows: list[tuple[list[int], list[int]]], length: int
) -> None:
    """`<s> a </s></s> b </s>`, as Liu et al. 2019 have it."""
    packed = pack([ragged([a for a, _ in rows]), ragged([b for _, b in rows])], ROBERTA, length)
    width = packed.token_ids.shape[1]
    for index, (first, second) in enumerate(rows):
        a, b = list(first), list(second)
        truncate_seq_pair(a, b, length - 4)
        sequence = [0, *a, 2, 2, *b, 2]
        row = sequence + [1] * (width - len(sequence))
        assert packed.token_ids[index].numpy().tolist() == row
        assert not packed.segment_ids[index].numpy().any()
        assert int(packed.lengths[index]) == len(sequence)
        assert bool(packed.truncated[index]) == (len(first) + len(second) + 4 > length)


def test_one_text_between_the_special_tokens_of_roberta() -> None:
    packed = pack([ragged([[5, 6], []])], ROBERTA, 8)
    np.testing.assert_array_equal(packed.token_ids, [[0, 5, 6, 2], [0, 2, 1, 1]])
    with pytest.raises(ValueError, match="must be at least 4, .* Received: max_sequence_length=3"):
        pack([ragged([[5]]), ragged([[6]])], ROBERTA, 3)
