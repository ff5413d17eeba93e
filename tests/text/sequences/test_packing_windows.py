"""Windows against the loop of run_squad.py, and as inputs against lists put together by hand."""

import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.sequences.packing import Windows, check_window_sizes, cut_windows, lay_out
from kbert.text.vocabulary import ROBERTA_TOKENS, Vocabulary
from tests.text.window_reference import lay, owned_by_window, windows_of

# [PAD]=0 [UNK]=1 [CLS]=2 [SEP]=3
VOCABULARY = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
PAD, CLS, SEP = 0, 2, 3


def ragged(rows: list[list[int]]) -> tf.RaggedTensor:
    return tf.RaggedTensor.from_row_lengths(
        tf.constant([number for row in rows for number in row], tf.int32),
        tf.constant([len(row) for row in rows], tf.int64),
    )


def numbered(lengths: list[int], base: int) -> list[list[int]]:
    """Ids that tell row and place: row 2 of base 1000 is 1200, 1201, ..."""
    return [[base + 100 * row + i for i in range(n)] for row, n in enumerate(lengths)]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[int] | None, int, int, int]:
    """Tokens of contexts and questions, and sizes that get forward."""
    contexts = draw(st.lists(st.integers(0, 45), max_size=4))
    asked = draw(st.booleans())
    questions = [draw(st.integers(0, 8)) for _ in contexts] if asked else None
    most, stride = draw(st.integers(1, 5)), draw(st.integers(0, 9))
    least = 3 + most + stride + 1 if asked else 2 + stride + 1
    return contexts, questions, least + draw(st.integers(0, 9)), stride, most


def cut(case: tuple[list[int], list[int] | None, int, int, int]) -> Windows:
    contexts, questions, length, stride, most = case
    return cut_windows(
        tf.constant(contexts, tf.int64),
        None if questions is None else tf.constant(questions, tf.int64),
        length,
        stride,
        most,
    )


def expected_rows(case: tuple[list[int], list[int] | None, int, int, int]) -> list:
    """The windows of each row, and how many tokens of its question they have."""
    contexts, questions, length, stride, most = case
    rows = []
    for row, tokens in enumerate(contexts):
        asked = 0 if questions is None else min(questions[row], most)
        room = length - asked - (2 if questions is None else 3)
        rows.append((windows_of(row, tokens, room, room - stride), asked))
    return rows


def test_by_hand() -> None:
    """Ten tokens in windows of four that share two: (0-3) (2-5) (4-7) (6-9).

    Token 2 has one neighbour on its poorer side in the first, none in the second; token 3 has none
    in the first and one in the second.
    """
    windows = cut_windows(tf.constant([10]), None, 6, 2)
    assert windows.row.numpy().tolist() == [0, 0, 0, 0]
    assert windows.first.numpy().tolist() == [0, 2, 4, 6]
    assert windows.size.numpy().tolist() == [4, 4, 4, 4]
    assert windows.owned_from.numpy().tolist() == [0, 3, 5, 7]
    assert windows.owned_to.numpy().tolist() == [3, 5, 7, 10]
    assert windows.question_length.numpy().tolist() == [0, 0, 0, 0]
    assert windows.lengths.numpy().tolist() == [6, 6, 6, 6]
    assert {column.dtype for column in windows} == {tf.int32}


def test_of_two_equal_windows_the_left_one_answers() -> None:
    # Windows of three that share one, (0-2) (2-4): token 2 is at the edge of both.
    windows = cut_windows(tf.constant([5]), None, 5, 1)
    assert windows.owned_from.numpy().tolist() == [0, 3]
    assert windows.owned_to.numpy().tolist() == [3, 5]


def test_questions_of_other_lengths_leave_other_room() -> None:
    """Length 10 less [CLS] and two [SEP]: room for 6, 4 (the question is cut to 3) and 7 tokens."""
    windows = cut_windows(tf.constant([7, 7, 7]), tf.constant([1, 9, 0]), 10, 2, 3)
    assert windows.row.numpy().tolist() == [0, 0, 1, 1, 1, 2]
    assert windows.first.numpy().tolist() == [0, 4, 0, 2, 4, 0]
    assert windows.size.numpy().tolist() == [6, 3, 4, 4, 3, 7]
    assert windows.question_length.numpy().tolist() == [1, 1, 3, 3, 3, 0]
    assert windows.lengths.numpy().tolist() == [10, 7, 10, 10, 9, 10]


@given(cases())
def test_windows_are_those_of_run_squad(case) -> None:
    windows = cut(case)
    found = [column.numpy().tolist() for column in windows]
    expected: list[list[int]] = [[] for _ in found]
    for of_row, asked in expected_rows(case):
        for window, owned in zip(of_row, owned_by_window(of_row), strict=True):
            specials = 2 if case[1] is None else 3
            one = [*window, owned[0] if owned else 0, owned[-1] + 1 if owned else 0, asked]
            for column, value in zip(expected, [*one, window.size + asked + specials]):
                column.append(value)
            assert owned == list(range(*one[3:5]))  # a run without gaps
    assert found == expected


@given(cases())
def test_every_token_is_owned_once_and_every_window_fits(case) -> None:
    windows = cut(case)
    assert (windows.lengths <= case[2]).numpy().all()
    owned: list[list[int]] = [[] for _ in case[0]]
    for row, start, end in zip(*(c.numpy() for c in windows[:1] + windows[3:5])):
        owned[row] += range(start, end)
    assert owned == [list(range(tokens)) for tokens in case[0]]
    assert set(windows.row.numpy()) == set(range(len(case[0])))  # each row has a window


@given(cases(), st.randoms(use_true_random=False))
def test_windows_as_inputs(case, random) -> None:
    contexts = numbered(case[0], 1000)
    questions = None if case[1] is None else numbered(case[1], 5000)
    expected = []
    for of_row, asked in expected_rows(case):
        for window, owned in zip(of_row, owned_by_window(of_row), strict=True):
            question = None if questions is None else questions[window.row][:asked]
            laid = lay(question, contexts[window.row], window, CLS, SEP)
            expected.append((*laid, [position in owned for position in laid.positions]))
    order = list(range(len(expected)))
    random.shuffle(order)
    order = order[: max(1, len(order) // 2)]
    if not expected:
        return
    some = cut(case).take(tf.constant(order))
    found = lay_out(
        some, ragged(contexts), None if questions is None else ragged(questions), VOCABULARY
    )
    width = max(len(expected[i][0]) for i in order)
    for name, column, padding in (
        ("token_ids", 0, PAD),
        ("segment_ids", 1, 0),
        ("position", 2, -1),
        ("owned", 3, False),
    ):
        padded = [expected[i][column] + [padding] * (width - len(expected[i][0])) for i in order]
        np.testing.assert_array_equal(getattr(found, name), padded, err_msg=name)
    real = [[place < len(expected[i][0]) for place in range(width)] for i in order]
    np.testing.assert_array_equal(found.padding_mask, real)
    types = [column.dtype for column in found]
    assert types == [tf.int32, tf.int32, tf.bool, tf.int32, tf.bool]


def test_rows_that_share_a_context() -> None:
    """Contexts kept once: rows 0 and 2 read context 1, row 1 reads context 0."""
    contexts = [[70, 71], [80, 81, 82]]
    windows = cut_windows(tf.constant([3, 2, 3]), tf.constant([1, 1, 0]), 8, 0, 2)
    found = lay_out(
        windows, ragged(contexts), ragged([[50], [51], []]), VOCABULARY, tf.constant([1, 0, 1])
    )
    np.testing.assert_array_equal(
        found.token_ids,
        [[2, 50, 3, 80, 81, 82, 3], [2, 51, 3, 70, 71, 3, 0], [2, 3, 80, 81, 82, 3, 0]],
    )


def test_in_a_graph_with_unknown_sizes() -> None:
    spec = tf.TensorSpec((None,), tf.int64)

    @tf.function(input_signature=[spec, spec], autograph=False)
    def widths(contexts: tf.Tensor, questions: tf.Tensor) -> tuple[tf.Tensor, ...]:
        windows = cut_windows(contexts, questions, 12, 2, 4)
        return windows.row, windows.size

    row, size = widths(tf.constant([20], tf.int64), tf.constant([9], tf.int64))
    # 12 - 3 - 4 is room for 5, a step of 3: 0-4, 3-7, ..., 15-19
    assert row.shape == (6,) and size.numpy().tolist() == [5] * 6
    nothing = tf.constant([], tf.int64)
    assert [column.shape for column in widths(nothing, nothing)] == [(0,), (0,)]


def test_a_million_tokens() -> None:
    """By hand: room 382, step 254; 1 + ceil((1,000,000 - 382) / 254) = 3937 windows."""
    windows = cut_windows(tf.constant([1_000_000]), None, 384, 128)
    assert windows.row.shape == (3937,)
    assert int(tf.reduce_sum(windows.owned_to - windows.owned_from)) == 1_000_000


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((10, -1), "`stride` must not be negative. Received: stride=-1"),
        (
            (10, 0, 0),
            "`max_question_length` must be at least 1. Received: max_question_length=0",
        ),
        (
            (6, 4),
            "`max_sequence_length` must be at least 7: the special tokens, the overlap and one "
            "token more. Received: max_sequence_length=6, stride=4",
        ),
        (
            (13, 4, 6),
            "`max_sequence_length` must be at least 14: the longest question (6), the special "
            "tokens, the overlap and one token more. Received: max_sequence_length=13, stride=4",
        ),
    ],
)
def test_wrong_sizes(arguments, message) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        check_window_sizes(*arguments)


def test_the_least_sizes_go_forward_token_by_token() -> None:
    check_window_sizes(7, 4)
    check_window_sizes(14, 4, 6)
    assert cut_windows(tf.constant([9]), None, 7, 4).first.numpy().tolist() == [0, 1, 2, 3, 4]
    windows = cut_windows(tf.constant([9]), tf.constant([6]), 14, 4, 6)
    assert windows.first.numpy().tolist() == [0, 1, 2, 3, 4]


def test_windows_with_two_separators() -> None:
    """`<s> q </s></s> c </s>`: a question of one token leaves three of nine, one of them shared."""
    roberta = Vocabulary(["<s>", "<pad>", "</s>", "<unk>", *"abc"], ROBERTA_TOKENS)
    windows = cut_windows(tf.constant([5]), tf.constant([1]), 8, 1, 2, separators=2)
    found = lay_out(windows, ragged([[10, 11, 12, 13, 14]]), ragged([[4]]), roberta)
    np.testing.assert_array_equal(
        found.token_ids, [[0, 4, 2, 2, 10, 11, 12, 2], [0, 4, 2, 2, 12, 13, 14, 2]]
    )
    np.testing.assert_array_equal(
        found.position, [[-1, -1, -1, -1, 0, 1, 2, -1], [-1, -1, -1, -1, 2, 3, 4, -1]]
    )
    assert not found.segment_ids.numpy().any()
    with pytest.raises(ValueError, match="must be at least 8: "):
        check_window_sizes(7, 1, 2, separators=2)
    check_window_sizes(8, 1, 2, separators=2)
