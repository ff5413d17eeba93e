"""Batches to pretrain on: by hand, statistics, workers, going on, and text that is none."""

from itertools import islice

import numpy as np
import pytest
import tensorflow as tf

from kbert.data.pretraining.corpus import Corpus
from kbert.data.pretraining.dataset import OBJECTIVES, pretraining_dataset
from kbert.data.pretraining.examples import ExampleMaker
from kbert.data.pretraining.stream import CorpusPosition
from tests.data.small_corpora import documents, text_of, written
from tests.small_pipelines import TOKENIZER, VOCABULARY

CLS, SEP, MASK = VOCABULARY.cls_id, VOCABULARY.sep_id, VOCABULARY.mask_id
SPECIAL = [VOCABULARY.padding_id, VOCABULARY.unknown_id, CLS, SEP, MASK]
SIZES = {"batch_size": 6, "max_sequence_length": 24}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("pretraining") / "a.txt"
    return Corpus([written(path, text_of(documents(40)))], block_bytes=2048)


def batches(corpus, count=None, **arguments):
    """Batches as (inputs, targets) of arrays."""
    dataset = pretraining_dataset(corpus, TOKENIZER, **{**SIZES, **arguments})
    return list(islice(dataset.as_numpy_iterator(), count))


def rows(some):
    """Each example of batches as bytes."""
    found = []
    for inputs, targets in some:
        columns = [*inputs.values(), *targets.values()]
        found += [b"|".join(c[i].tobytes() for c in columns) for i in range(len(columns[0]))]
    return found


def unmasked(inputs, targets):
    """The token ids before anything was hidden."""
    token_ids, found = inputs["token_ids"].copy(), targets["masked_tokens"]
    rows, columns = np.nonzero(found >= 0)
    token_ids[rows, inputs["masked_positions"][rows, columns]] = found[rows, columns]
    return token_ids


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_shapes_are_static(corpus, objective):
    dataset = pretraining_dataset(corpus, TOKENIZER, objective=objective, **SIZES)
    inputs, targets = dataset.element_spec
    shapes = {"token_ids": (6, 24), "segment_ids": (6, 24), "padding_mask": (6, 24)}
    expected = {}
    if objective.startswith("mlm"):
        shapes["masked_positions"] = expected["masked_tokens"] = (6, 4)  # 15 % of 24, upwards
    else:
        expected["next_tokens"] = (6, 24)
    if objective.endswith("_nsp"):
        expected["next_sentence"] = (6,)
    assert {name: tuple(spec.shape) for name, spec in inputs.items()} == shapes
    assert {name: tuple(spec.shape) for name, spec in targets.items()} == expected
    kinds = {name: spec.dtype.name for name, spec in {**inputs, **targets}.items()}
    assert kinds.pop("padding_mask") == "bool" and set(kinds.values()) == {"int32"}
    assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
    found_inputs, found_targets = next(dataset.as_numpy_iterator())
    assert {name: x.shape for name, x in found_inputs.items()} == shapes
    assert {name: x.shape for name, x in found_targets.items()} == expected


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_the_examples_become(corpus, objective):
    """Padded by hand; what is hidden put back."""
    has_pairs = objective.endswith("nsp")
    maker = ExampleMaker(TOKENIZER, 24, next_sentence=has_pairs)
    expected = [
        (one.token_ids.tolist(), int(one.first_lengths[0]), int(one.is_random_next[0]))
        for block in corpus.blocks()
        for made in [maker.make(block, 3, 0)]
        for one in (made.select(slice(i, i + 1)) for i in range(len(made)))
    ]
    found = batches(corpus, seed=3, shuffle=False, epochs=1, objective=objective)
    place = 0
    for inputs, targets in found:
        token_ids = unmasked(inputs, targets) if "mlm" in objective else inputs["token_ids"]
        for row, ids in enumerate(token_ids.tolist()):
            text, first, is_random = expected[place]
            length = len(text)
            assert ids == text + [0] * (24 - length)
            segments = [0] * first + [1] * (length - first) + [0] * (24 - length)
            assert inputs["segment_ids"][row].tolist() == segments
            assert inputs["padding_mask"][row].tolist() == [i < length for i in range(24)]
            if has_pairs:
                assert targets["next_sentence"][row] == is_random
            if objective.startswith("lm"):
                following = text[1:] + [-1] * (25 - length)
                assert targets["next_tokens"][row].tolist() == following
            place += 1
    assert place == len(expected) > 150


@pytest.mark.parametrize(
    "kind", [{}, pytest.param({"whole_words": True, "ngram": 2}, marks=pytest.mark.slow)]
)
def test_workers_make_the_same(corpus, kind):
    """Masks included; and all of it anew in the next epoch and with another seed."""
    both = rows(batches(corpus, epochs=2, batch_size=32, **kind))
    one = rows(batches(corpus, epochs=1, batch_size=9, **kind))
    assert both[: len(one)] == one and len({*both}) == len(both)
    for workers in (2, 3):
        shares = [
            rows(batches(corpus, epochs=1, worker=w, workers=workers, threads=w + 1, **kind))
            for w in range(workers)
        ]
        assert all(shares) and sorted(row for share in shares for row in share) == sorted(one)
    assert {*one}.isdisjoint(rows(batches(corpus, epochs=1, seed=1, **kind)))


def test_each_epoch_hides_something_else(corpus):
    """The same texts, as there are no shorter ones, but other tokens of them."""
    arguments = {"objective": "mlm", "short_share": 0.0, "shuffle": False, "batch_size": 1}
    count = len(batches(corpus, epochs=1, **arguments))
    found = batches(corpus, epochs=2, **arguments)
    first, second = found[:count], found[count:]
    assert [unmasked(*x).tolist() for x in first] == [unmasked(*x).tolist() for x in second]
    same = [
        np.array_equal(a["masked_positions"], b["masked_positions"])
        for (a, _), (b, _) in zip(first, second)
    ]
    # Of 22 tokens three or four are chosen; the last texts of documents may have fewer.
    assert count > 100 and np.mean(same) < 0.1


def test_tensorflows_own_seed_does_not_matter(corpus):
    found = []
    for seed in (1, 2):
        tf.random.set_seed(seed)
        np.random.seed(seed)
        found.append(rows(batches(corpus, 20)))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        pytest.param({"shuffle": False}, marks=pytest.mark.slow),
        {"worker": 1, "workers": 2},
    ],
)
def test_going_on_anywhere(corpus, arguments):
    """Over the end of the epoch; a dataset that is read again gives the same again."""
    arguments = {"window_blocks": 2, "seed": 4, **arguments}
    dataset = pretraining_dataset(corpus, TOKENIZER, **SIZES, **arguments)
    whole = list(islice(dataset.as_numpy_iterator(), 70))
    positions = [dataset.stream.position(number) for number in range(70)]
    assert positions[0] == CorpusPosition() and positions[-1].epoch > 0
    for number in (1, 27, 68):
        rest = batches(corpus, 70 - number, **arguments, first_position=positions[number])
        assert rows(rest) == rows(whole[number:])
    assert rows(islice(dataset.as_numpy_iterator(), 70)) == rows(whole)


@pytest.mark.slow
def test_statistics_over_a_million_tokens_and_a_hundred_thousand_pairs(tmp_path):
    """15 % +- 0.1 of the tokens, of these 80, 10 and 10 % +- 0.5; half of the pairs +- 0.5 %.

    With 20 tokens the share is 3 of 20, so that only shorter examples are rounded.
    """
    text = text_of(documents(2500, sentences=(20, 60), words=(1, 4))) * 7
    corpus = Corpus([written(tmp_path / "a.txt", text)], block_bytes=1 << 20)
    tokens = chosen = pairs = random_ones = 0
    fates = np.zeros(3)
    for inputs, targets in batches(corpus, epochs=1, batch_size=4096, max_sequence_length=20):
        real = inputs["padding_mask"]
        before = unmasked(inputs, targets)
        masked = targets["masked_tokens"]
        is_chosen = masked >= 0
        shown = np.take_along_axis(inputs["token_ids"], inputs["masked_positions"], axis=1)
        # Nothing but the chosen ones is changed, and these are neither special nor padding.
        assert not np.isin(masked[is_chosen], SPECIAL).any()
        assert np.take_along_axis(real, inputs["masked_positions"], axis=1)[is_chosen].all()
        assert (before == inputs["token_ids"]).sum() >= before.size - is_chosen.sum()
        assert (before[~real] == 0).all() and (inputs["token_ids"][~real] == 0).all()
        assert ((inputs["token_ids"] == CLS).sum(1) == 1).all()
        assert ((inputs["token_ids"] == SEP).sum(1) == 2).all()
        wanted = np.maximum(1, np.round(0.15 * real.sum(axis=1)))
        assert (is_chosen.sum(axis=1) <= wanted).all()
        tokens += real.sum()
        chosen += is_chosen.sum()
        is_mask = shown[is_chosen] == MASK
        is_same = shown[is_chosen] == masked[is_chosen]
        fates += [is_mask.sum(), (~is_mask & ~is_same).sum(), is_same.sum()]
        pairs += len(real)
        random_ones += targets["next_sentence"].sum()
    assert tokens > 1_000_000 and pairs > 100_000
    assert abs(chosen / tokens - 0.15) < 0.001
    same_by_chance = 0.1 / (len(VOCABULARY) - len(SPECIAL))
    expected = [0.8, 0.1 - same_by_chance, 0.1 + same_by_chance]
    assert (abs(fates / fates.sum() - expected) < 0.005).all()
    assert abs(random_ones / pairs - 0.5) < 0.005


# --- bad input ----------------------------------------------------------------------------------


def test_what_is_wrong_with_the_text_is_told_while_it_is_read(tmp_path):
    """With the words of `kbert.data.pretraining.corpus` and `kbert.data.pretraining.stream`."""
    good = text_of(documents(2000)).encode()
    line = good.count(b"\n") + 1
    for name, text, message in (
        ("a.txt", "One sentence.\n\nAnother one.\n", r"documents of two sentences .*a\.txt"),
        ("b.txt", " \n\u200b\n", r"no example for worker 0 in epoch 0 of .*b\.txt"),
        ("c.txt", good + b"\xff\n", rf"c\.txt, line {line}: the file must be UTF-8 text"),
    ):
        dataset = pretraining_dataset(
            Corpus([written(tmp_path / name, text)]), TOKENIZER, **SIZES, epochs=2
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            list(dataset)


def test_wrong_arguments(corpus):
    for arguments, message in (
        ({"objective": "nsp"}, r"`objective` must be one of .*\. Received: 'nsp'"),
        ({"max_predictions": 0}, "`max_predictions` must be at least 1. Received: .*=0"),
        ({"max_sequence_length": 3}, "`max_sequence_length` must be at least 5"),
        ({"batch_size": 0}, "`batch_size` must be at least 1. Received: batch_size=0"),
        ({"masked_share": 1.0}, "`share` must be between 0 and 1"),
        ({"ngram": 2}, "`ngram` must be at least 1, and 1 without `whole_words`"),
        ({"worker": 2, "workers": 2}, "`worker` must be at least 0 and less than `workers`"),
    ):
        with pytest.raises(ValueError, match=message):
            pretraining_dataset(corpus, TOKENIZER, **{**SIZES, **arguments})
    with pytest.raises(TypeError, match="unexpected keyword argument 'windows'"):
        pretraining_dataset(corpus, TOKENIZER, **SIZES, windows=3)
