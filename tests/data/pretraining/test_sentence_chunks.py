"""Which sentences make an example: by hand, for any lengths, and beside Model Garden's loop."""

import random
from bisect import bisect_right
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.pretraining.sentence_chunks import Chunk, Target, paired_chunks, single_chunks


def splits(lengths):
    return [0, *accumulate(lengths)]


def scripted(*numbers):
    """A generator of these numbers, which fails where more are asked for."""
    return iter(numbers).__next__


def pairs(documents, room, numbers):
    """The chunks of documents given as lists of numbers of tokens."""
    sentences = splits(length for document in documents for length in document)
    random_number = scripted(*numbers)
    target = Target(room, 0.0, random_number)
    return list(paired_chunks(sentences, splits(map(len, documents)), target, random_number))


def test_pairs_by_hand():
    """Numbers drawn: target, middle, coin, and for a random text its document and its sentence."""
    found = pairs(
        [[5, 5, 5, 5], [4, 4, 4]],
        10,
        [
            *(0.9, 0.0, 0.5),  # sentences 0 and 1, and they belong together
            *(0.9, 0.0, 0.4, 0.0, 0.4),  # 2 and 3; instead of 3 the other document, from its second
            *(0.9, 0.4, 0.9, 0.9),  # 3 alone; the other document, from its third
            *(0.9, 0.9, 0.9),  # all of the other document, cut behind its second sentence
        ],
    )
    assert found == [
        Chunk(0, 5, 5, 10, False),
        Chunk(10, 15, 24, 32, True),
        Chunk(15, 20, 28, 32, True),
        Chunk(20, 28, 28, 32, False),
    ]


def test_a_last_sentence_follows_the_one_before_it_once_more():
    found = pairs([[6, 5, 5]], 10, [0.9, 0.0, 0.5, 0.9, 0.5])
    assert found == [Chunk(0, 6, 6, 11, False), Chunk(6, 11, 11, 16, False)]


def test_a_sentence_that_is_long_enough_gets_the_next():
    assert pairs([[10, 3]], 10, [0.9, 0.0, 0.5]) == [Chunk(0, 10, 10, 13, False)]


def test_one_document_by_hand():
    """The random text comes from behind, or from before and ends there; or there is none."""
    lengths = [[5, 5, 5, 5, 5]]
    behind = pairs(lengths, 10, [0.9, 0.0, 0.0, 0.0, *[0.9, 0.0, 0.9] * 2])
    assert behind[0] == Chunk(0, 5, 10, 15, True)
    before = pairs(lengths, 20, [0.9, 0.0, 0.9, 0.9, 0.0, 0.99])
    assert before == [Chunk(0, 5, 5, 20, False), Chunk(20, 25, 15, 20, True)]
    assert pairs([[5, 5]], 10, [0.9, 0.0, 0.0]) == [Chunk(0, 5, 5, 10, False)]


def test_documents_of_one_sentence_are_second_texts_only():
    assert pairs([[5], [7], [3]], 10, []) == []
    found = pairs([[5, 5], [7]], 10, [0.9, 0.0, 0.1, 0.0, 0.0, 0.9, 0.9])
    assert found == [Chunk(0, 5, 10, 17, True), Chunk(0, 5, 5, 10, False)]


def test_single_texts_by_hand():
    """Ten tokens, then a shorter one of 2 + int(0.5 * 9) = 6; the last ones are what is left."""
    target = Target(10, 0.1, scripted(0.9, 0.05, 0.5, 0.9, 0.9, 0.9))
    found = list(single_chunks(splits([7, 7, 8, 5, 9]), [0, 3, 5], target))
    assert [chunk[:2] for chunk in found] == [(0, 10), (10, 16), (16, 22), (22, 32), (32, 36)]
    assert all(chunk[2] == chunk[3] and not chunk.is_random for chunk in found)


def test_lengths_of_targets():
    """One in ten is shorter, and any length from 2 on is as likely; five standard deviations."""
    target = Target(21, 0.1, random.Random(1).random)
    counts = np.bincount([target.draw() for _ in range(100_000)], minlength=22)
    expected = 10_000 / 20
    assert counts[:2].sum() == 0 and abs(counts[2:21] - expected).max() < 5 * expected**0.5
    assert abs(counts[21] / 100_000 - 0.905) < 5 * (0.905 * 0.095 / 100_000) ** 0.5
    assert {Target(2, 1.0, random.Random(1).random).draw() for _ in range(9)} == {2}


lengths_of_documents = st.lists(
    st.lists(st.integers(1, 12), min_size=1, max_size=8), min_size=1, max_size=6
)


@given(lengths_of_documents, st.integers(2, 30), st.integers(0, 2**32), st.floats(0, 1))
def test_pairs_are_what_they_say(lengths, room, seed, short_share):
    sentences, documents = splits(n for d in lengths for n in d), splits(map(len, lengths))
    uniform = random.Random(seed).random
    target = Target(room, short_share, uniform)
    chunks = list(paired_chunks(sentences, documents, target, uniform))
    starts = [sentences[i] for i in documents]
    seen = set()
    for chunk in chunks:
        assert {*chunk[:4]} <= {*sentences}
        assert chunk.begin_a < chunk.end_a and chunk.begin_b < chunk.end_b
        of_a, of_b = (bisect_right(starts, chunk[i]) for i in (0, 2))
        assert bisect_right(starts, chunk.end_a - 1) == of_a
        assert bisect_right(starts, chunk.end_b - 1) == of_b
        if not chunk.is_random:
            assert chunk.begin_b == chunk.end_a and of_a == of_b
            seen.update(range(chunk.begin_b, chunk.end_b))
        elif len(lengths) > 1:
            assert of_a != of_b
        else:
            assert chunk.end_b <= chunk.begin_a or chunk.begin_b > chunk.end_a
        seen.update(range(chunk.begin_a, chunk.end_a))
    # No sentence is left out, but for the documents of one.
    wanted = {
        token
        for number, document in enumerate(lengths)
        if len(document) > 1
        for token in range(starts[number], starts[number + 1])
    }
    assert seen == wanted


@given(lengths_of_documents, st.integers(2, 30), st.integers(0, 2**32))
def test_single_texts_are_all_tokens_once(lengths, room, seed):
    sentences, documents = splits(n for d in lengths for n in d), splits(map(len, lengths))
    target = Target(room, 0.3, random.Random(seed).random)
    chunks = list(single_chunks(sentences, documents, target))
    tokens = [token for chunk in chunks for token in range(chunk.begin_a, chunk.end_a)]
    assert tokens == list(range(sentences[-1]))
    starts = [sentences[i] for i in documents]
    for chunk in chunks:
        assert bisect_right(starts, chunk.begin_a) == bisect_right(starts, chunk.end_a - 1)


@pytest.mark.slow
def test_half_of_a_hundred_thousand_pairs_are_random():
    """50 % +- 0.5, with sentences of which many are long enough alone."""
    draw = random.Random(2)
    lengths = [[draw.randint(2, 60) for _ in range(draw.randint(1, 60))] for _ in range(8000)]
    sentences, documents = splits(n for d in lengths for n in d), splits(map(len, lengths))
    target = Target(61, 0.1, draw.random)
    chunks = list(paired_chunks(sentences, documents, target, draw.random))
    assert len(chunks) > 100_000
    assert abs(sum(chunk.is_random for chunk in chunks) / len(chunks) - 0.5) < 0.005


@pytest.mark.parity
def test_like_model_garden_where_sentences_are_short():
    """Number and lengths of examples, of documents so long that their ends hardly matter.

    Limits are five standard deviations of the difference, as the documents tell them.
    """
    from official.nlp.data.create_pretraining_data import create_instances_from_document

    draw = random.Random(3)
    lengths = [[draw.randint(2, 9) for _ in range(60)] for _ in range(300)]
    texts = [[["w"] * n for n in document] for document in lengths]
    sentences, documents = splits(n for d in lengths for n in d), splits(map(len, lengths))
    room = 45

    def figures(first, second, is_random):
        """Of a document: examples, random ones, and tokens of both texts, cut to the room."""
        kept = [min(room, a + b) for a, b in zip(first, second)]
        return [len(first), sum(is_random), sum(kept), sum(a > 20 for a in first)]

    theirs = []
    for number in range(len(texts)):
        found = create_instances_from_document(
            texts, number, room + 3, 0.0, 0.15, 7, ["w"], random.Random(number)
        )
        counts = [instance.segment_ids.count(1) - 1 for instance in found]
        firsts = [len(instance.tokens) - 3 - count for instance, count in zip(found, counts)]
        theirs.append(figures(firsts, counts, [instance.is_random_next for instance in found]))
    uniform = random.Random(4).random
    ours = [[] for _ in texts]
    starts = [sentences[i] for i in documents]
    for chunk in paired_chunks(sentences, documents, Target(room, 0.0, uniform), uniform):
        first, second = chunk.end_a - chunk.begin_a, chunk.end_b - chunk.begin_b
        # Cut as the original cuts: the longer one, until both fit.
        while first + second > room:
            first, second = (first - 1, second) if first > second else (first, second - 1)
        ours[bisect_right(starts, chunk.begin_a) - 1].append((first, second, chunk.is_random))
    ours = np.array([figures(*zip(*found)) for found in ours], "float64")
    theirs = np.array(theirs, "float64")
    deviation = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / len(texts))
    difference = ours.mean(axis=0) - theirs.mean(axis=0)
    # Theirs gives the last sentence, where it is alone, a random text each time.
    assert (abs(difference) < 5 * deviation + [0, 0.5, 0, 0]).all(), (difference, deviation)
    assert theirs.mean(axis=0)[0] > 8
