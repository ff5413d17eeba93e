"""What is hidden from a masked language model: shares, limits, and the same for the same seed."""

from functools import cache

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.sequences.masking import TokenMasking
from kbert.text.sequences.stateless_random import row_seeds
from kbert.text.vocabulary import BERT_TOKENS, Vocabulary
from tests.few_examples import few_examples

ORDINARY = 20_000
TOKENS = [
    *("[PAD]", "[unused0]", "[unused99]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *(f"w{i}" for i in range(ORDINARY)),
    *(f"##p{i}" for i in range(ORDINARY // 10)),
]
VOCABULARY = Vocabulary(TOKENS)
PAD, UNK, CLS, SEP, MASK = map(VOCABULARY.id_of, ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"))
FIRST = VOCABULARY.id_of("w0")
SPECIAL = [VOCABULARY.id_of(token) for token in BERT_TOKENS.names]
NEVER_SHOWN_ANEW = [*SPECIAL, 1, 2]  # the unused ones too


def rows(lengths, width, seed=0, unknown=0.0):
    """Rows `[CLS] a [SEP] b [SEP]` of random ordinary tokens, some of them unknown, and padding."""
    draw = np.random.default_rng(seed)
    ids = draw.integers(FIRST, len(TOKENS), (len(lengths), width)).astype("int32")
    ids[draw.random(ids.shape) < unknown] = UNK
    lengths = np.asarray(lengths)
    real = np.arange(width) < lengths[:, None]
    ids[:, 0] = CLS
    every = np.arange(len(lengths))
    ids[every, lengths // 2] = SEP
    ids[every, lengths - 1] = SEP
    return np.where(real, ids, PAD), real


@cache
def masking_of(cap, share=0.15, whole_words=False, ngram=1):
    """A masking and its graph, which takes any batch."""
    masking = TokenMasking(VOCABULARY, cap, share, whole_words, ngram)
    specs = [tf.TensorSpec((None, None), kind) for kind in (tf.int32, tf.bool)]
    specs.append(tf.TensorSpec((None,), tf.int64))
    return masking, tf.function(masking.mask, autograph=False, input_signature=specs)


def masked(kind, ids, real, seeds):
    """What comes of a batch, by the arguments of `masking_of`."""
    return [part.numpy() for part in masking_of(*kind)[1](ids, real, seeds)]


def check(cap, ids, real, shown, positions, targets):
    """What must hold of every batch, read off row by row."""
    assert positions.shape == targets.shape == (len(ids), cap)
    assert {shown.dtype, positions.dtype, targets.dtype} == {np.dtype("int32")}
    for i in range(len(ids)):
        there = targets[i] >= 0
        own = positions[i][there]
        assert there.tolist() == sorted(there.tolist(), reverse=True)  # padding comes last
        assert not positions[i][~there].any() and (targets[i][~there] == -1).all()
        assert own.tolist() == sorted(set(own.tolist()))
        assert targets[i][there].tolist() == ids[i][own].tolist()
        assert real[i][own].all() and not np.isin(ids[i][own], SPECIAL).any()
        elsewhere = np.setdiff1d(np.arange(ids.shape[1]), own)
        assert shown[i][elsewhere].tolist() == ids[i][elsewhere].tolist()
        new = shown[i][own]
        assert not np.isin(new[new != MASK], NEVER_SHOWN_ANEW).any()


@pytest.mark.parametrize("whole_words, ngram", [(False, 1), (True, 1), (True, 3)])
def test_shares_over_a_million_tokens(whole_words, ngram):
    """15 % of the tokens +- 0.1, of these 80/10/10 % +- 0.5 (Devlin et al. 2019, section 3.1).

    Lengths are many, so that rounding evens out; the cap is far away.
    """
    lengths = np.random.default_rng(1).integers(20, 129, 14_000)
    ids, real = rows(lengths, 128, unknown=0.01)
    kind = (40, 0.15, whole_words, ngram)
    chosen, total, hidden, changed, kept = 0, 0, 0, 0, 0
    for begin in range(0, len(ids), 2000):
        part = slice(begin, begin + 2000)
        seeds = row_seeds(3, begin, count=len(ids[part]))
        shown, positions, targets = masked(kind, ids[part], real[part], seeds)
        there = targets >= 0
        assert not np.isin(targets[there], SPECIAL).any()
        assert np.take_along_axis(real[part], positions, axis=1)[there].all()
        new = np.take_along_axis(shown, positions, axis=1)
        total += real[part].sum()
        chosen += there.sum()
        hidden += (new[there] == MASK).sum()
        kept += (new[there] == targets[there]).sum()
        changed += ((new != targets) & (new != MASK))[there].sum()
    assert total > 1_000_000
    assert abs(chosen / total - 0.15) < 0.001
    assert abs(hidden / chosen - 0.8) < 0.005
    assert abs(changed / chosen - 0.1) < 0.005
    assert abs(kept / chosen - 0.1) < 0.005


def test_the_number_of_predictions_is_that_of_the_original():
    """`min(cap, max(1, int(round(n * 0.15))))` with Python's rounding, for every length."""
    lengths = np.arange(4, 129)
    ids, real = rows(lengths, 128)
    for cap in (5, 20, 64):
        *_, targets = masked((cap,), ids, real, row_seeds(0, count=125))
        expected = [min(cap, max(1, int(round(n * 0.15)))) for n in lengths.tolist()]
        # A row of four tokens has one that may be chosen: three are special.
        assert (targets >= 0).sum(axis=1).tolist() == expected


def test_every_place_and_every_replacement_has_the_same_chance():
    """Limits of five standard deviations."""
    ids, real = rows([42] * 5000, 42)
    shown, positions, targets = masked((6,), ids, real, row_seeds(5, count=5000))
    counts = np.bincount(positions.ravel(), minlength=42)
    assert counts[[0, 21, 41]].tolist() == [0, 0, 0]
    expected = 5000 * 6 / 39
    ordinary = np.delete(counts, [0, 21, 41])
    assert abs(ordinary - expected).max() < 5 * np.sqrt(expected)
    new = np.take_along_axis(shown, positions, axis=1)
    other = new[(new != targets) & (new != MASK)] - FIRST
    halves = (other < len(TOKENS[FIRST:]) / 2).mean()
    assert abs(halves - 0.5) < 5 * 0.5 / np.sqrt(len(other))


@few_examples(12)
@given(
    st.lists(st.integers(3, 24), min_size=1, max_size=6),
    st.sampled_from(
        [(5,), (30, 0.9), (5, 0.4, True, 1), (30, 0.9, True, 2), (1, 0.15, True), (8, 0.5, True, 4)]
    ),
    st.integers(0, 2**63 - 1),
)
def test_rules_hold_and_neither_batch_nor_padding_matters(lengths, kind, seed):
    ids, real = rows(lengths, 24, seed % 1000, unknown=0.2)
    seeds = row_seeds(seed, count=len(ids))
    together = masked(kind, ids, real, seeds)
    check(kind[0], ids, real, *together)
    for i, length in enumerate(lengths):
        alone = masked(kind, ids[i : i + 1, :length], real[i : i + 1, :length], seeds[i : i + 1])
        assert alone[0][0].tolist() == together[0][i, :length].tolist()
        assert alone[1][0].tolist() == together[1][i].tolist()
        assert alone[2][0].tolist() == together[2][i].tolist()


def test_other_seeds_choose_otherwise():
    ids, real = rows([64], 64)
    found = {tuple(masked((10,), ids, real, row_seeds(i, count=1))[1][0]) for i in range(20)}
    assert len(found) == 20


def test_nothing_to_choose():
    """Rows of padding, of special tokens only, and no rows at all."""
    ids = np.array([[PAD] * 4, [CLS, UNK, MASK, SEP], [CLS, FIRST, SEP, PAD]], "int32")
    real = ids != PAD
    for kind in ((3,), (3, 0.15, True, 2)):
        shown, positions, targets = masked(kind, ids, real, row_seeds(1, count=3))
        assert targets.tolist() == [[-1] * 3, [-1] * 3, [FIRST, -1, -1]]
        assert positions.tolist() == [[0] * 3, [0] * 3, [1, 0, 0]]
        assert shown[:2].tolist() == ids[:2].tolist()
        none = masked(kind, ids[:0], real[:0], row_seeds(1, count=0))
        assert [part.shape for part in none] == [(0, 4), (0, 3), (0, 3)]


def test_pieces_of_a_word_share_their_fate():
    """With whole words a row of long words is hidden, changed or kept word by word."""
    word = [FIRST, VOCABULARY.id_of("##p1"), VOCABULARY.id_of("##p2")]
    ids = np.array([[CLS, *word * 12, SEP]] * 400, "int32")
    kind = (20, 0.15, True)
    shown, positions, targets = masked(kind, ids, ids >= 0, row_seeds(2, count=400))
    # round(38 * 0.15) = 6 tokens: two words, wherever they are.
    assert ((targets >= 0).sum(axis=1) == 6).all()
    places = positions[:, :6].reshape(-1, 3)
    assert (places[:, 0] % 3 == 1).all()
    assert (places[:, 1:] - places[:, :-1] == 1).all()
    new = np.take_along_axis(shown, positions[:, :6], axis=1).reshape(-1, 3)
    hidden, kept = (new == MASK).sum(axis=1), (new == word).sum(axis=1)
    assert set(hidden.tolist()) == {0, 3} and set(kept.tolist()) >= {0, 3}
    assert abs((hidden == 3).mean() - 0.8) < 5 * np.sqrt(0.16 / 800)


def test_shapes_are_known_in_a_graph():
    masking = TokenMasking(VOCABULARY, 7, whole_words=True)
    specs = [tf.TensorSpec((4, 16), kind) for kind in (tf.int32, tf.bool)]
    specs.append(tf.TensorSpec((4,), tf.int64))
    graph = tf.function(masking.mask, autograph=False, input_signature=specs)
    outputs = graph.get_concrete_function().structured_outputs
    assert [part.shape.as_list() for part in outputs] == [[4, 16], [4, 7], [4, 7]]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"max_predictions": 0}, "`max_predictions` must be at least 1. Received: max_pred.*=0"),
        # As for a length of which no token may be masked, whose most is 0.
        ({"max_predictions": 0, "share": 0.0}, "`share` must be between 0 and 1. Rec.*: share=0.0"),
        ({"share": 0.0}, "`share` must be between 0 and 1. Received: share=0.0"),
        ({"share": 1.0}, "`share` must be between 0 and 1. Received: share=1.0"),
        ({"ngram": 0}, "`ngram` must be at least 1, and 1 without .*. Received: ngram=0"),
        ({"ngram": 2}, "and 1 without `whole_words`. Received: ngram=2, whole_words=False"),
        (
            {"vocabulary": Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])},
            r"`vocabulary` must have the token \[MASK\]. Received: Vocabulary\(5 tokens\)",
        ),
        (
            {"vocabulary": Vocabulary([*BERT_TOKENS.names, "[unused1]"])},
            "`vocabulary` must have tokens that are not special. Received: 6 special or unused",
        ),
    ],
)
def test_what_makes_no_sense(arguments, message):
    with pytest.raises(ValueError, match=message):
        TokenMasking(**{"vocabulary": VOCABULARY, "max_predictions": 5, **arguments})


def test_a_first_token_that_is_ordinary_is_masked_too():
    """Places behind the last prediction write nothing, least of all over the first token."""
    ids = np.full((200, 8), FIRST, "int32")
    real = np.ones_like(ids, bool)
    shown, positions, targets = masked((5,), ids, real, np.arange(200))
    of_first = (positions == 0) & (targets >= 0)
    assert of_first.any() and (targets[:, 1:] == -1).all()  # one of eight, so four are padding
    changed = (shown != ids).any(axis=1)
    assert changed.mean() > 0.75 and changed[of_first.any(axis=1)].mean() > 0.75
