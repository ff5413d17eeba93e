"""Equal texts, by hand and against a dictionary."""

import numpy as np
import pytest

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.features import cache as feature_cache
from kbert.data.features.cache import text_digests


def packed(texts: list[list[int]], segments: list[list[int]] | None = None) -> PackedExamples:
    """Texts as they are, with segment ids 0 unless given."""
    lengths = np.array([len(text) for text in texts], "int32")
    ids = np.array([i for text in texts for i in text], "int32")
    kinds = np.array([i for text in segments or [] for i in text] or np.zeros_like(ids), "int32")
    starts = np.cumsum(lengths, dtype="int64") - lengths
    return PackedExamples(ids, kinds, starts, lengths, np.zeros(len(texts), bool))


def distinct_texts(texts: PackedExamples) -> tuple[np.ndarray, np.ndarray]:
    """As the cache finds them."""
    return feature_cache.distinct_texts(text_digests(texts, "key"), texts.lengths)


def test_by_hand():
    texts = [[1, 2], [3], [1, 2], [4, 5, 6], [2, 1], [3], []]
    kinds, of_text = distinct_texts(packed(texts))
    # The longest first, equally long ones in their order: 456, 12, 21, 3, nothing.
    assert kinds.tolist() == [3, 0, 4, 1, 6]
    assert of_text.tolist() == [1, 3, 1, 0, 2, 3, 4]


def test_segments_make_a_difference():
    kinds, of_text = distinct_texts(packed([[1, 2]] * 3, [[0, 0], [0, 1], [0, 0]]))
    assert kinds.tolist() == [0, 1]
    assert of_text.tolist() == [0, 1, 0]


@pytest.mark.parametrize("count", [0, 1])
def test_few_texts(count):
    kinds, of_text = distinct_texts(packed([[7, 7]] * count))
    assert kinds.tolist() == of_text.tolist() == [0] * count


def test_against_a_dictionary():
    random = np.random.default_rng(1)
    texts = [random.integers(250, 260, random.integers(0, 4)).tolist() for _ in range(500)]
    kinds, of_text = distinct_texts(packed(texts))
    first: dict[tuple[int, ...], int] = {}
    for i, text in enumerate(texts):
        first.setdefault(tuple(text), i)
    assert 10 < len(first) < 400
    assert kinds.tolist() == sorted(first.values(), key=lambda i: (-len(texts[i]), i))
    assert kinds[of_text].tolist() == [first[tuple(text)] for text in texts]


def test_texts_that_do_not_lie_one_after_the_other():
    given = packed([[1, 2], [3, 4]])
    other = PackedExamples(
        given.token_ids,
        given.segment_ids,
        np.array([2, 0, 2]),
        np.array([2, 2, 2], "int32"),
        np.zeros(3, bool),
    )
    kinds, of_text = distinct_texts(other)
    assert kinds.tolist() == [0, 1]
    assert of_text.tolist() == [0, 1, 0]
