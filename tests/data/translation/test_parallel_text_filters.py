"""What is left out of parallel text, and what the report says. Expected values by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.translation.parallel_text import SHOWN_LINES, LeftOut, ParallelText, filter_parallel


def parallel(sources, targets, lines=None):
    return ParallelText(sources, targets, "a.tsv", lines or list(range(1, len(sources) + 1)))


EXAMPLES = parallel(
    ["a b", "", "a b c d e", "  \u00a0", "a", "a b c", "\u3000"],
    ["a b", "x", "a b", "", "a b c d", "a b c d e f", "x y"],
    [3, 4, 5, 6, 7, 8, 10],
)
SOURCE_LENGTHS = np.array([2, 0, 5, 0, 1, 3, 0])
TARGET_LENGTHS = np.array([2, 1, 2, 0, 4, 6, 2])


def test_empty_sides_are_left_out_by_default():
    kept, report = filter_parallel(EXAMPLES)
    assert kept.lines == [3, 5, 7, 8]
    assert report.left_out == {"empty_both": LeftOut(1, [6]), "empty_source": LeftOut(2, [4, 10])}
    assert report.kept.tolist() == [0, 2, 4, 5]
    assert kept.sources == [EXAMPLES.sources[i] for i in report.kept]


def test_every_reason_counts_a_pair_once():
    kept, report = filter_parallel(
        EXAMPLES, SOURCE_LENGTHS, TARGET_LENGTHS, max_length=4, max_ratio=3
    )
    assert kept.lines == [3]
    assert report.left_out == {
        "empty_both": LeftOut(1, [6]),
        "empty_source": LeftOut(2, [4, 10]),
        "too_long": LeftOut(2, [5, 8]),  # 5 tokens, 6 tokens
        "ratio": LeftOut(1, [7]),  # 1 to 4
    }
    assert str(report) == (
        "a.tsv: 1 of 7 sentence pairs kept\n"
        "  left out: 1 empty on both sides (line 6)\n"
        "  left out: 2 without a source sentence (lines 4, 10)\n"
        "  left out: 2 too long (lines 5, 8)\n"
        "  left out: 1 of too different lengths (line 7)"
    )


def test_limits_are_what_may_still_be():
    kept, _ = filter_parallel(EXAMPLES, SOURCE_LENGTHS, TARGET_LENGTHS, max_length=6, max_ratio=4.0)
    assert kept.lines == [3, 5, 7, 8]


def test_nothing_to_leave_out_gives_the_same_object():
    examples = parallel(["a"], ["b"])
    kept, report = filter_parallel(examples)
    assert kept is examples
    assert str(report) == "a.tsv: 1 of 1 sentence pairs kept"


def test_everything_may_go():
    kept, report = filter_parallel(parallel(["", ""], ["a", ""]))
    assert (len(kept), report.kept.tolist()) == (0, [])
    assert filter_parallel(kept)[1].total == 0
    none = np.zeros(0, int)
    assert len(filter_parallel(kept, none, none, max_length=1, max_ratio=1)[0]) == 0


def test_sentences_without_translations():
    kept, report = filter_parallel(parallel(["a", "", "b c"], None), np.array([1, 0, 9]))
    assert (kept.sources, kept.targets) == (["a", "b c"], None)
    assert list(report.left_out) == ["empty_source"]
    kept, _ = filter_parallel(parallel(["a", "b"], None), np.array([1, 9]), max_length=8)
    assert kept.sources == ["a"]


def test_a_text_without_tokens_is_empty():
    examples = parallel(["\x01", "a"], ["a", "\u200b"])
    kept, report = filter_parallel(examples, np.array([0, 1]), np.array([1, 0]))
    assert report.left_out == {"empty_source": LeftOut(1, [1]), "empty_target": LeftOut(1, [2])}
    assert len(kept) == 0


def test_a_line_of_100_000_characters_is_reported():
    examples = parallel(["a", "x" * 100_000], ["b", "c"])
    lengths = np.array([len(text) for text in examples.sources])
    kept, report = filter_parallel(examples, lengths, np.ones(2, int), max_length=500)
    assert (kept.sources, report.left_out) == (["a"], {"too_long": LeftOut(1, [2])})


def test_only_the_first_lines_are_kept():
    _, report = filter_parallel(parallel([""] * 30, ["a"] * 30))
    assert report.left_out["empty_source"] == LeftOut(30, list(range(1, SHOWN_LINES + 1)))
    assert "30 without a source sentence (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...)" in str(report)


PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30)


@given(PAIRS, st.none() | st.integers(1, 9), st.none() | st.integers(1, 4))
def test_as_pair_by_pair(pairs, max_length, max_ratio):
    examples = parallel(["x" * s for s, _ in pairs], ["y" * t for _, t in pairs])

    def stays(source, target):
        if max_length is not None and max(source, target) > max_length:
            return False
        if min(source, target) == 0:
            return False
        return max_ratio is None or max(source / target, target / source) <= max_ratio

    lengths = np.array(pairs, int).reshape(-1, 2).T
    kept, report = filter_parallel(examples, *lengths, max_length=max_length, max_ratio=max_ratio)
    assert report.kept.tolist() == [i for i, two in enumerate(pairs) if stays(*two)]
    assert kept.lines == [int(i) + 1 for i in report.kept]
    assert report.total == len(kept) + sum(found.count for found in report.left_out.values())


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"max_length": 0}, r"`max_length` must be at least 1\. Received: max_length=0"),
        ({"max_ratio": 0.5}, r"`max_ratio` must be at least 1\. Received: max_ratio=0\.5"),
        ({"max_ratio": float("nan")}, r"`max_ratio` must be at least 1\. Received: max_ratio=nan"),
        ({"max_length": 5}, r"`source_lengths` must be given with `max_length`.*=None"),
        (
            {"max_ratio": 5, "source_lengths": np.ones(2)},
            r"`target_lengths` must be given with `max_ratio`.*=None",
        ),
        (
            {"source_lengths": np.ones(3)},
            r"`source_lengths` must have one length a pair, 2 of them\. Received: shape \(3,\)",
        ),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        filter_parallel(parallel(["a", "b"], ["c", "d"]), **arguments)


def test_wrong_arguments_without_translations():
    examples = parallel(["a"], None)
    with pytest.raises(ValueError, match=r"`max_ratio` must be None for sentences without"):
        filter_parallel(examples, np.ones(1), max_ratio=2)
    with pytest.raises(ValueError, match=r"`target_lengths` must be None .*Received: 1 lengths"):
        filter_parallel(examples, target_lengths=np.ones(1))
