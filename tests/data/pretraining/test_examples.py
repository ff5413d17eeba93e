"""Examples of a block: by hand, and as the chunks that they come from say."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.pretraining.corpus import Block
from kbert.data.pretraining.examples import ExampleMaker, PretrainingExamples, TokenizedBlock
from tests.data.small_corpora import documents
from tests.small_pipelines import TOKENIZER, VOCABULARY

CLS, SEP = VOCABULARY.cls_id, VOCABULARY.sep_id
FIRST = 1000  # of token ids that tell their place in the block


def block_of(lengths):
    """Documents given as lists of numbers of tokens; token i of the block has the id 1000 + i."""
    sentences = np.cumsum([0, *(n for document in lengths for n in document)])
    ends = np.cumsum([0, *map(len, lengths)])
    return TokenizedBlock(FIRST + np.arange(sentences[-1], dtype="int32"), sentences, ends)


def examples_of(examples):
    """Each example as (first text, second text or None, is_random), with the special tokens off."""
    found = []
    for i in range(len(examples)):
        one = examples.select(slice(i, i + 1))
        ids, first = one.token_ids.tolist(), int(one.first_lengths[0])
        assert len(ids) == one.lengths[0] and ids[0] == CLS and ids[first - 1] == SEP
        second = None
        if first < len(ids):
            assert ids[-1] == SEP
            second = ids[first:-1]
        assert not {CLS, SEP} & {*ids[1 : first - 1], *(second or [])}
        found.append((ids[1 : first - 1], second, int(one.is_random_next[0])))
    return found


def test_texts_by_hand():
    """Without shorter ones, one text of three tokens and the special ones at a time."""
    maker = ExampleMaker(TOKENIZER, 5, short_share=0.0, next_sentence=False)
    examples = maker.make_from_tokens(block_of([[2, 2], [1], [4]]), 1, 0, 0, 0)
    assert examples.token_ids.tolist() == [
        *(CLS, 1000, 1001, 1002, SEP),
        *(CLS, 1003, SEP),
        *(CLS, 1004, SEP),
        *(CLS, 1005, 1006, 1007, SEP),
        *(CLS, 1008, SEP),
    ]
    assert examples.lengths.tolist() == examples.first_lengths.tolist() == [5, 3, 3, 5, 3]
    assert examples.is_random_next.tolist() == [0] * 5
    assert len(examples.token_ids) == 19
    assert len(examples) == 5 and len(set(examples.seeds.tolist())) == 5
    kinds = [getattr(examples, name).dtype.name for name in examples.__dataclass_fields__]
    assert kinds == ["int32", "int32", "int32", "int32", "int64"]


def test_pairs_by_hand():
    """Two documents of two sentences: a pair is these two, or one of them and all of the other's.

    What fits is not cut, and what does not loses tokens at its ends until both texts are equal.
    """
    maker = ExampleMaker(TOKENIZER, 11, short_share=0.0)
    block = block_of([[4, 4], [4, 4]])
    sentences = [list(range(FIRST + 4 * i, FIRST + 4 * i + 4)) for i in range(4)]
    seen = set()
    for seed in range(60):
        for first, second, is_random in examples_of(maker.make_from_tokens(block, seed, 0, 0, 0)):
            begin = sentences.index(first)
            if is_random:
                # 4 tokens are missing, which one sentence has.
                assert second in sentences and sentences.index(second) // 2 != begin // 2
            else:
                assert begin in (0, 2) and second == sentences[begin + 1]
            seen.add((begin, sentences.index(second)))
    others = {(a, b) for a in range(4) for b in range(4) if a // 2 != b // 2}
    assert seen == {(0, 1), (2, 3)} | others


@pytest.mark.parametrize(
    "a, b, room, kept",
    [(8, 3, 8, (5, 3)), (3, 8, 8, (3, 5)), (8, 8, 8, (4, 4)), (7, 7, 7, (4, 3)), (2, 2, 8, (2, 2))],
)
def test_how_pairs_are_cut(a, b, room, kept):
    """Lengths by the loop of the original; where the ends go is a coin's choice for each token."""
    maker = ExampleMaker(TOKENIZER, room + 3, short_share=0.0)
    fronts = []
    for seed in range(200):
        # One document of two sentences: there is no random text.
        (example,) = examples_of(maker.make_from_tokens(block_of([[a, b]]), seed, 0, 0, 0))
        first, second, is_random = example
        assert (len(first), len(second)) == kept and not is_random
        assert first == list(range(first[0], first[-1] + 1))
        assert FIRST <= first[0] and first[-1] < FIRST + a <= second[0]
        assert second == list(range(second[0], second[-1] + 1)) and second[-1] < FIRST + a + b
        fronts.append(first[0] - FIRST)
    lost = a - kept[0]
    # Binomial(lost, 1/2), to five standard deviations.
    assert abs(np.mean(fronts) - lost / 2) <= 5 * np.sqrt(lost / 4 / 200)


@given(
    st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=6), max_size=5),
    st.integers(5, 40),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_rules_for_any_block(lengths, length, next_sentence, seed):
    maker = ExampleMaker(TOKENIZER, length, 0.2, next_sentence)
    block = block_of(lengths)
    examples = maker.make_from_tokens(block, seed, 3, 1, 2)
    ends = [FIRST + int(block.sentences[i]) for i in block.documents]

    def document(token):
        return sum(token >= end for end in ends)

    for first, second, is_random in examples_of(examples):
        assert len(first) + len(second or []) <= length - (3 if next_sentence else 2)
        assert (second is not None) == next_sentence
        for text in (first, *([] if second is None else [second])):
            assert text and text == list(range(text[0], text[-1] + 1))
            assert document(text[0]) == document(text[-1])
        if next_sentence and not is_random:
            assert document(first[0]) == document(second[0]) and first[-1] < second[0]
        elif next_sentence and len(lengths) > 1:
            assert document(first[0]) != document(second[0])
    again = maker.make_from_tokens(block, seed, 3, 1, 2)
    for name in examples.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(examples, name), getattr(again, name))


def test_seed_epoch_and_block_matter():
    maker = ExampleMaker(TOKENIZER, 24)
    block = block_of([[5] * 30, [6] * 30])
    found = {
        tuple(maker.make_from_tokens(block, *numbers).token_ids.tolist())
        for numbers in [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]
    }
    assert len(found) == 5


def test_text_to_examples():
    """Sentences of a real block: words of a pair that belongs together follow each other."""
    made = documents(20, seed=1)
    block = Block(3, 4, tuple("\n".join(document) for document in made), "a test")
    maker = ExampleMaker(TOKENIZER, 64)
    examples = maker.make(block, 5, 6)
    flat = {
        tuple(ids): number
        for number, document in enumerate(made)
        for ids in [[i for s in document for i in TOKENIZER.tokenize([s]).values.numpy().tolist()]]
    }
    for first, second, is_random in examples_of(examples):
        joined = [ids for ids in flat if _inside(first, ids)]
        assert joined
        if not is_random:
            assert any(_inside(second, ids) for ids in joined)
    assert 0.3 < examples.is_random_next.mean() < 0.7
    np.testing.assert_array_equal(examples.token_ids, maker.make(block, 5, 6).token_ids)
    assert not np.array_equal(examples.token_ids, maker.make(block, 5, 7).token_ids)


def _inside(part, whole):
    return any(list(whole[i : i + len(part)]) == part for i in range(len(whole) - len(part) + 1))


@pytest.mark.slow
def test_shares_over_a_hundred_thousand_pairs():
    """Half of the second texts are random ones, +- 0.5 %."""
    draw = random.Random(7)
    maker = ExampleMaker(TOKENIZER, 64)
    random_ones, count = 0, 0
    for number in range(9):
        lengths = [[draw.randint(2, 70) for _ in range(200)] for _ in range(100)]
        examples = maker.make_from_tokens(block_of(lengths), 1, 0, 0, number)
        random_ones += examples.is_random_next.sum()
        count += len(examples)
    assert count > 100_000
    assert abs(random_ones / count - 0.5) < 0.005


def test_most_examples_are_full():
    """Nine in ten are as long as they can be, where no text ends too early.

    Sentences of one token, so that no example is longer than it was meant to be; of those that were
    meant to be shorter one in 60 is full as well. A random text ends with its document, with a
    chance of about 30 / 5000.
    """
    maker = ExampleMaker(TOKENIZER, 64)
    lengths = maker.make_from_tokens(block_of([[1] * 5000] * 40), 1, 0, 0, 0).lengths
    assert len(lengths) > 4000
    # Five standard deviations are 0.023.
    assert abs((lengths == 64).mean() - (0.9 + 0.1 / 60) * (1 - 0.5 * 30 / 5000)) < 0.023
    assert lengths.min() >= 5


def test_selecting_and_joining():
    maker = ExampleMaker(TOKENIZER, 16)
    examples = maker.make_from_tokens(block_of([[5, 4, 3, 8, 2], [3, 9]]), 1, 0, 0, 0)
    each = examples_of(examples)
    order = np.array([2, 0, 2])
    assert examples_of(examples.select(order)) == [each[2], each[0], each[2]]
    both = PretrainingExamples.join([examples.select(slice(1, None)), examples.select(order[:1])])
    assert examples_of(both) == [*each[1:], each[2]]
    assert both.seeds.tolist() == [*examples.seeds[1:], examples.seeds[2]]
    assert len(examples.select(order[:0])) == 0


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"max_sequence_length": 4}, "`max_sequence_length` must be at least 5, .* Received: .*=4"),
        ({"short_share": 1.5}, "`short_share` must be from 0 to 1. Received: short_share=1.5"),
        ({"short_share": -0.1}, "`short_share` must be from 0 to 1. Received: short_share=-0.1"),
    ],
)
def test_what_makes_no_sense(arguments, message):
    with pytest.raises(ValueError, match=message):
        ExampleMaker(TOKENIZER, **arguments)


def test_full_sentences_by_hand():
    """Whole sentences in eight tokens, over the ends of documents with a separator there.

    Sentences of 3 and 2 tokens fill six, the next begins another example; one of 7 is cut in two.
    """
    maker = ExampleMaker(TOKENIZER, 8, 0.0, next_sentence=False, packing="full_sentences")
    examples = maker.make_from_tokens(block_of([[3, 2], [2, 2], [7]]), 1, 0, 0, 0)
    assert examples.token_ids.tolist() == [
        *(CLS, 1000, 1001, 1002, 1003, 1004, SEP, SEP),
        *(CLS, 1005, 1006, 1007, 1008, SEP, SEP),
        *(CLS, 1009, 1010, 1011, SEP),
        *(CLS, 1012, 1013, 1014, 1015, SEP),
    ]
    assert examples.lengths.tolist() == examples.first_lengths.tolist() == [8, 7, 5, 6]


@given(
    st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=6), max_size=5),
    st.integers(5, 40),
    st.integers(0, 2**32),
)
def test_full_sentences_of_any_block(lengths, length, seed):
    maker = ExampleMaker(TOKENIZER, length, 0.2, next_sentence=False, packing="full_sentences")
    examples = maker.make_from_tokens(block_of(lengths), seed, 3, 1, 2)
    assert (examples.lengths <= length).all() and not examples.is_random_next.any()
    inner = []
    for i in range(len(examples)):
        ids = examples.select(slice(i, i + 1)).token_ids.tolist()
        assert ids[0] == CLS and ids[-1] == SEP and len(ids) > 2
        inner += ids[1:-1]
    # No token is lost, repeated or out of place, and a separator ends each document but the last.
    expected, token = [], FIRST
    for number, document in enumerate(lengths):
        expected += [SEP] if number else []
        expected += range(token, token + sum(document))
        token += sum(document)
    assert inner == expected


@pytest.mark.parametrize(
    "options, message",
    [
        ({"next_sentence": False, "packing": "pages"}, "`packing` must be documents or full_sent"),
        ({"packing": "full_sentences"}, "`packing` must be documents with next_sentence=True"),
    ],
)
def test_packings_that_there_are(options, message):
    with pytest.raises(ValueError, match=message):
        ExampleMaker(TOKENIZER, 16, **options)
