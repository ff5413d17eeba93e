"""Examples as batches, against a naive padding of each example."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.batches.dataset import batched_dataset
from kbert.data.batches.packed_examples import PackedExamples, pack_examples
from kbert.data.batches.plans import batch_plan
from kbert.data.features.text_features import TextFeatures
from tests.few_examples import few_examples
from tests.small_pipelines import TOKENIZER


def packed_of(lengths, padding_id=0):
    """Examples whose tokens tell example and place: example 3 is 301, 302, ..."""
    tokens = [100 * i + 1 + place for i, n in enumerate(lengths) for place in range(n)]
    segments = [int(place >= n // 2) for n in lengths for place in range(n)]
    lengths = np.array(lengths, "int32")
    return PackedExamples(
        np.array(tokens, "int32"),
        np.array(segments, "int32"),
        np.cumsum(lengths, dtype="int64") - lengths,
        lengths,
        np.zeros(len(lengths), bool),
        padding_id,
    )


def example(packed, i):
    cells = slice(packed.starts[i], packed.starts[i] + packed.lengths[i])
    return packed.token_ids[cells].tolist(), packed.segment_ids[cells].tolist()


def naive(packed, rows, width=None):
    """Each example padded by hand."""
    width = width or max(packed.lengths[i] for i in rows)
    ids, segments, mask = [], [], []
    for i in rows:
        own_ids, own_segments = example(packed, i)
        missing = width - len(own_ids)
        ids.append(own_ids + [packed.padding_id] * missing)
        segments.append(own_segments + [0] * missing)
        mask.append([True] * len(own_ids) + [False] * missing)
    return {"token_ids": ids, "segment_ids": segments, "padding_mask": mask}


def same(inputs, expected):
    assert sorted(inputs) == sorted(expected)
    for name, rows in expected.items():
        np.testing.assert_array_equal(inputs[name], rows)
    types = {name: array.dtype for name, array in inputs.items()}
    assert types == {"token_ids": "int32", "segment_ids": "int32", "padding_mask": "bool"}


@few_examples(8, thorough=20)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=25),
    st.booleans(),
    st.sampled_from([(3, None), (None, 20)]),
    st.integers(0, 5),
)
def test_batches_are_the_naive_padding_and_keep_their_labels(lengths, shuffle, cut, seed):
    packed = packed_of(lengths, padding_id=9)
    labels, weights = np.arange(len(lengths)) * 10, np.arange(len(lengths)) * 0.5
    dataset = batched_dataset(packed, labels, weights, *cut, shuffle=shuffle, seed=seed)
    for epoch in range(2):
        plan = batch_plan(packed.lengths, *cut, shuffle, seed, epoch)
        batches = list(dataset.as_numpy_iterator())
        assert len(batches) == len(plan)
        for rows, (inputs, own_labels, own_weights) in zip(plan, batches, strict=True):
            same(inputs, naive(packed, rows))
            np.testing.assert_array_equal(own_labels, labels[rows])
            np.testing.assert_array_equal(own_weights, weights[rows])


def test_forms_of_the_elements():
    packed = packed_of([3, 2])
    (inputs,) = batched_dataset(packed).as_numpy_iterator()
    same(inputs, naive(packed, [0, 1]))
    soft = np.array([[0.25, 0.75], [1.0, 0.0]], "float32")
    ((inputs, labels),) = batched_dataset(packed, soft).as_numpy_iterator()
    np.testing.assert_array_equal(labels, soft)
    assert labels.dtype == "float32"


@pytest.mark.parametrize("soft", [False, True])
def test_labels_of_tokens(soft):
    """Each token keeps its own; padding gets -1, or a distribution of nothing."""
    packed = packed_of([3, 1, 4, 2])
    labels = packed.token_ids * 10  # which tell example and place, as the tokens do
    if soft:
        labels = np.stack([labels, -labels], axis=1).astype("float32")
    weights = np.arange(4.0)
    for fixed_length in (None, 6):
        batches = batched_dataset(
            packed, None, weights, 3, fixed_length=fixed_length, token_labels=labels
        )
        for inputs, found, own_weights in batches.as_numpy_iterator():
            ids, real = inputs["token_ids"].astype(found.dtype), inputs["padding_mask"]
            one = np.where(real, ids * 10, 0 if soft else -1)
            expected = np.stack([one, -one], axis=-1) if soft else one
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(own_weights, weights[ids[:, 0].astype(int) // 100])


def test_fixed_length():
    packed = packed_of([3, 2, 7])
    batches = list(batched_dataset(packed, batch_size=2, fixed_length=9).as_numpy_iterator())
    same(batches[0], naive(packed, [2, 0], 9))
    same(batches[1], naive(packed, [1], 9))


def test_whole_batches_of_one_shape():
    packed = pack_examples(TOKENIZER, ["a film", "good", "very good", "", "film"], None, 9)
    cut = {"batch_size": 2, "fixed_length": 9, "drop_remainder": True}
    dataset = batched_dataset(packed, np.arange(5), shuffle=True, **cut)
    inputs, labels = dataset.element_spec
    assert tuple(inputs["token_ids"].shape) == (2, 9) and tuple(labels.shape) == (2,)
    found = [y.tolist() for _, y in dataset.as_numpy_iterator()]
    assert len(found) == int(dataset.cardinality()) == 2  # of five examples one is left out
    with pytest.raises(ValueError, match="batch_size=8, 5 examples"):
        batched_dataset(packed, batch_size=8, drop_remainder=True)


def test_shapes_are_known_before_the_first_batch():
    dataset = batched_dataset(packed_of([3, 2]), np.zeros(2, "int32"))
    inputs, labels = dataset.element_spec
    assert all(spec.shape.rank == 2 for spec in inputs.values()) and labels.shape.rank == 1


def test_number_of_batches():
    packed = packed_of([3] * 10)
    assert int(batched_dataset(packed, batch_size=4).cardinality()) == 3
    assert int(batched_dataset(packed, batch_size=4, shuffle=True).cardinality()) == 3
    budget = batched_dataset(packed, batch_size=None, batch_tokens=12)
    assert int(budget.cardinality()) == 3
    # Another epoch may have another number of batches.
    shuffled = batched_dataset(packed, batch_size=None, batch_tokens=12, shuffle=True)
    assert shuffled.cardinality() == tf.data.UNKNOWN_CARDINALITY


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"labels": [0]}, "`labels` must have one entry an example. Received: 1 for 2 examples"),
        ({"labels": [0, 1, 2]}, "`labels` must have one entry an example. Received: 3 for 2"),
        (
            {"labels": [0, 1], "sample_weights": [1.0]},
            "`sample_weights` must have one entry an example. Received: 1 for 2 examples",
        ),
        (
            {"sample_weights": [1.0, 2.0]},
            "`labels` must be given with `sample_weights`. Received: labels=None",
        ),
        (
            {"fixed_length": 4},
            "`fixed_length` must be at least the longest example, 5 tokens. Received: "
            "fixed_length=4",
        ),
        (
            {"token_labels": [0, 1]},
            "`token_labels` must have one entry a token. Received: 2 for 8 tokens",
        ),
        (
            {"labels": [0, 1], "token_labels": [0] * 8},
            "`labels` must be left out with `token_labels`. Received: both",
        ),
        ({"batch_size": 0}, "`batch_size` must be at least 1. Received: batch_size=0"),
        (
            {"batch_size": None, "batch_tokens": 0, "shuffle": True},
            "`batch_tokens` must be at least 1. Received: batch_tokens=0",
        ),
    ],
)
def test_wrong_arguments(arguments, message):
    arguments = {k: np.array(v) if isinstance(v, list) else v for k, v in arguments.items()}
    with pytest.raises(ValueError, match=message):
        batched_dataset(packed_of([5, 3]), **arguments)


def test_parts_of_random_batches():
    """Each part is a batch of its own; all of an epoch's examples come once."""
    lengths = np.array([3, 1, 2, 5, 4, 1], "int32")
    ids = np.repeat(np.arange(6, dtype="int32"), lengths)
    examples = PackedExamples(
        ids, np.zeros_like(ids), np.cumsum(lengths) - lengths, lengths, np.zeros(6, bool)
    )
    batches = batched_dataset(examples, batch_size=4, shuffle=True, seed=1, parts=2)
    found = [batch["token_ids"].numpy()[:, 0].tolist() for batch in batches]
    assert [len(rows) for rows in found] == [2, 2, 1, 1]
    assert sorted(sum(found, [])) == list(range(6))
    assert np.all(np.diff(lengths[found[0] + found[1]]) <= 0)
    again = [batch["token_ids"].numpy()[:, 0].tolist() for batch in batches]
    assert again != found  # the next epoch
    for wrong in ({"shuffle": False}, {"batch_size": None, "batch_tokens": 9}):
        with pytest.raises(ValueError, match="`parts` must come with `batch_size` and `shuffle`"):
            batched_dataset(examples, **{"shuffle": True, **wrong}, parts=2)


@pytest.mark.parametrize("fixed_length", [None, 9])
def test_known_states_are_those_of_the_rows(fixed_length):
    lengths = [3, 7, 1, 5, 2, 6]
    packed = packed_of(lengths)
    starts, total = packed.starts, int(packed.lengths.sum())
    shard = np.repeat(packed.token_ids[:, None], 2, axis=1) + np.array([0, 0.5])
    shard = shard.astype("float16")
    assert len(shard) == total
    states = TextFeatures([shard], np.zeros(6, int), starts, packed.lengths)
    dataset = batched_dataset(
        packed, np.arange(6), batch_size=2, shuffle=True, fixed_length=fixed_length, states=states
    )
    seen = []
    for inputs, labels in dataset:
        ids, real = inputs["token_ids"].numpy(), inputs["padding_mask"].numpy()
        assert inputs["states"].shape == (*ids.shape, 2) and inputs["states"].dtype == "float16"
        expected = np.where(real, ids, 0)[..., None] + np.where(real[..., None], [0, 0.5], 0)
        np.testing.assert_array_equal(inputs["states"], expected)
        seen += labels.numpy().tolist()
    assert sorted(seen) == list(range(6))
