"""Forms of texts to embed, and batches of several texts an example."""

import numpy as np
import pandas as pd
import pytest

from kbert.pipelines.text_inputs import listed
from kbert.tasks.embedding.inputs import (
    PackedTuples,
    TextColumns,
    read_text_columns,
    tuple_dataset,
    tuple_plan,
)
from tests.small_pipelines import VOCABULARY, random_texts, small_embedder

A, B, C = ["a", "the"], ["good", "bad"], ["film", "!"]


@pytest.mark.parametrize(
    "x, expected",
    [
        (A, (A,)),
        ((A,), (A,)),
        ((A, B), (A, B)),
        ((A, np.array(B), C), (A, B, C)),
        ({"text": A}, (A,)),
        ({"text_b": B, "text_a": A}, (A, B)),
        ({"anchor": A, "positive": B, "negative": C}, (A, B, C)),
        (pd.DataFrame({"positive": B, "anchor": A, "other": [1, 2]}), (A, B)),
        (listed((iter(A), iter(B))), (A, B)),
        ([], ([],)),
    ],
)
def test_forms(x, expected):
    assert read_text_columns(x).columns == expected


@pytest.mark.parametrize("x", [{"token_ids": np.zeros((1, 2))}, np.zeros(3), None])
def test_what_is_no_text(x):
    assert read_text_columns(x) is None


@pytest.mark.parametrize(
    "x, error, message",
    [
        ("a text", ValueError, "`x` must be a list of texts. Received: x='a text', a single one"),
        ([("a", "b")], ValueError, "`x` must be a tuple of lists, one for the first texts of all"),
        ((A, B[:1]), ValueError, "`x` must be of one length. Received: 2 texts, 1 texts"),
        ({"text": A, "more": B}, ValueError, 'keys "anchor" and "positive" and "negative"'),
        ((A, ["b", None]), TypeError, r"`x\[1\]\[1\]` must be str or bytes. Received: None"),
    ],
)
def test_wrong_forms(x, error, message):
    with pytest.raises(error, match=message):
        read_text_columns(x)


def test_columns():
    columns = TextColumns((A, B, [b"a", "a"]))
    assert len(columns) == 2 and columns[1:].columns == (["the"], ["bad"], ["a"])
    assert columns.in_rows == ["a", "good", b"a", "the", "bad", "a"]
    np.testing.assert_array_equal(columns.numbers, [[0, 1, 0], [2, 3, 0]])


def packed_tuples(rows=11, seed=0):
    texts = random_texts(2 * rows, seed)
    packed = small_embedder().pack(texts[::2], texts[1::2])
    assert isinstance(packed, PackedTuples)
    return texts, packed


def test_batches_hold_the_tokens_of_their_examples():
    texts, packed = packed_tuples()
    model = small_embedder()
    singles = [model.pack([text]).token_ids for text in texts]
    assert len(packed) == 11 and packed.count == 2
    np.testing.assert_array_equal(
        packed.lengths, [len(a) + len(b) for a, b in zip(singles[::2], singles[1::2])]
    )
    seen = []
    targets, weights = np.arange(11), np.arange(11.0) + 1
    for inputs, rows, weight in tuple_dataset(packed, targets, weights, 4, shuffle=True):
        np.testing.assert_array_equal(weight, rows.numpy() + 1)
        for place, row in enumerate(rows.numpy()):
            for k in range(2):
                real = inputs["padding_mask"][place, k].numpy()
                ids = inputs["token_ids"][place, k].numpy()
                np.testing.assert_array_equal(ids[real], singles[2 * row + k])
                assert (ids[~real] == VOCABULARY.padding_id).all()
        seen.extend(rows.numpy())
    assert sorted(seen) == list(range(11)) and seen != list(range(11))


def test_every_pass_has_another_order_and_a_resumed_one_goes_on():
    _, packed = packed_tuples()
    given = {"targets": np.arange(11), "batch_size": 4, "shuffle": True, "seed": 5}
    dataset = tuple_dataset(packed, **given)
    first, second = ([rows.numpy().tolist() for _, rows in dataset] for _ in range(2))
    assert first != second and int(dataset.cardinality()) == 3
    later = tuple_dataset(packed, **given, first_epoch=1, first_batch=1)
    assert [rows.numpy().tolist() for _, rows in later] == second[1:]


def test_plans():
    lengths = np.array([9, 1, 5, 5, 2])
    ordered = tuple_plan(lengths, 2, None, False, 0, 0)
    assert [rows.tolist() for rows in ordered] == [[0, 1], [2, 3], [4]]
    by_tokens = tuple_plan(lengths, None, 10, True, 0, 0)
    assert all(len(rows) * lengths[rows].max() <= 10 for rows in by_tokens)
    with pytest.raises(ValueError, match="`batch_size` must be None where `batch_tokens` is given"):
        tuple_plan(lengths, 2, 10, True, 0, 0)
    assert sorted(np.concatenate(by_tokens)) == list(range(5))


def test_a_budget_counts_padding():
    """A short text beside a long one takes as many positions as that."""
    packed = small_embedder().pack(["a"] * 12, ["good bad the a good bad the"] * 12)
    longest = int(packed.packed.lengths.max())
    batches = tuple_dataset(packed, np.arange(12), batch_tokens=2 * 3 * longest)
    assert [tuple(inputs["token_ids"].shape) for inputs, _ in batches] == [(3, 2, longest)] * 4
