"""Batches of several tasks: how many examples of each, which ones, and what a row holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.batches.mixtures import Columns, Mixture, Sampling, mixed_dataset, mixture
from kbert.data.batches.packed_examples import PackedExamples

PADDING = 7
COUNTS = st.lists(st.integers(1, 200), min_size=2, max_size=5)
SAMPLINGS = st.sampled_from(
    [Sampling(), Sampling("square-root"), Sampling("temperature", 5.0), Sampling("annealed")]
)
EPOCHS = st.integers(1, 6)
SEEDS = st.integers(0, 3)


# --- how many of each task -------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampling, counts, epoch, expected",
    [
        (Sampling(), [100, 400, 900], 3, [100, 400, 900]),
        # 10 : 20 : 30 of 1400, which is 233.3, 466.7 and 700.
        (Sampling("square-root"), [100, 400, 900], 0, [233, 467, 700]),
        (Sampling("temperature"), [100, 400, 900], 4, [233, 467, 700]),
        # 2 : 3 : 4 of 353, which is 78.4, 117.7 and 156.9.
        (Sampling("temperature", 4), [16, 81, 256], 0, [78, 118, 157]),
        # Fifth powers: n^a is 1 : 2^(5 a) : 3^(5 a), with a = 1, 0.8, 0.6, 0.4, 0.2.
        (Sampling("annealed"), [1, 32, 243], 0, [1, 32, 243]),
        (Sampling("annealed"), [1, 32, 243], 1, [3, 45, 228]),
        (Sampling("annealed"), [1, 32, 243], 2, [8, 61, 207]),
        (Sampling("annealed"), [1, 32, 243], 3, [20, 79, 177]),
        (Sampling("annealed"), [1, 32, 243], 4, [46, 92, 138]),
        (Sampling("annealed"), [1, 32, 243], 9, [46, 92, 138]),  # trained on beyond the end
        (Sampling(weights=(1, 2, 1.0)), [10, 20, 70], 0, [25, 50, 25]),
        (Sampling(weights=(1, 1, 1)), [2, 1, 1], 0, [2, 1, 1]),  # 4/3 each, the rest to the first
    ],
)
def test_quotas_by_hand(sampling, counts, epoch, expected):
    assert sampling.quotas(counts, epoch, 5) == expected


def test_one_annealed_epoch_goes_by_size():
    assert Sampling("annealed").quotas([3, 90], 0, 1) == [3, 90]


def exponent(sampling, epoch, epochs):
    of_epoch = 1 - 0.8 * epoch / (epochs - 1) if epochs > 1 else 1.0
    known = {"proportional": 1.0, "square-root": 0.5, "temperature": 1 / sampling.temperature}
    return {**known, "annealed": of_epoch}[sampling.kind]


@given(COUNTS, SAMPLINGS, EPOCHS)
def test_quotas_by_the_formula(counts, sampling, epochs):
    for epoch in range(epochs):
        powers = [count ** exponent(sampling, epoch, epochs) for count in counts]
        exact = [sum(counts) * power / sum(powers) for power in powers]
        found = sampling.quotas(counts, epoch, epochs)
        assert sum(found) == sum(counts)
        assert all(abs(one - whole) < 1 + 1e-9 for one, whole in zip(found, exact))
        if sampling.kind == "proportional":
            assert found == counts


@given(st.lists(st.tuples(st.integers(1, 200), st.floats(0.01, 100.0)), min_size=2, max_size=5))
def test_quotas_by_weights(tasks):
    counts, weights = zip(*tasks)
    found = Sampling(weights=weights).quotas(counts, 0, 1)
    assert sum(found) == sum(counts)
    for one, weight in zip(found, weights):
        assert abs(one - sum(counts) * weight / sum(weights)) < 1 + 1e-9


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"kind": "random"}, "`sampling` must be one of proportional, .*: sampling='random'"),
        ({"kind": ""}, "or a number above 0 for each task. Received: sampling=''"),
        ({"temperature": 0}, "`temperature` must be a number above 0. Received: 0"),
        ({"temperature": float("inf")}, "`temperature` must be .*: inf"),
        ({"temperature": float("nan")}, "`temperature` must be .*: nan"),
        ({"temperature": "2"}, "`temperature` must be .*: '2'"),
        ({"temperature": True}, "`temperature` must be .*: True"),
        ({"weights": (1.0, 0.0)}, r"`sampling` must have a number above 0 .*: sampling=\[1.0, 0"),
        ({"weights": (1.0, None)}, r"`sampling` must have a number above 0 .*\[1.0, None\]"),
    ],
)
def test_wrong_samplings(arguments, message):
    with pytest.raises(ValueError, match=message):
        Sampling(**arguments)


# --- which examples --------------------------------------------------------------------------


@given(COUNTS, SAMPLINGS, EPOCHS, SEEDS)
def test_passes_over_each_task(counts, sampling, epochs, seed):
    drawn = [sampling.rows(counts, epoch, epochs, seed) for epoch in range(epochs)]
    for epoch, of_tasks in enumerate(drawn):
        assert [len(rows) for rows in of_tasks] == sampling.quotas(counts, epoch, epochs)
        assert {rows.dtype for rows in of_tasks} == {np.dtype("int64")}
    for task, count in enumerate(counts):
        every = np.concatenate([of_tasks[task] for of_tasks in drawn])
        for start in range(0, len(every) - count + 1, count):
            assert sorted(every[start : start + count]) == list(range(count))
        often = np.bincount(every, minlength=count)
        assert len(often) == count and often.max() - often.min() <= 1


@given(COUNTS, SAMPLINGS, EPOCHS, SEEDS)
def test_an_epoch_alone_is_the_one_of_a_sequence(counts, sampling, epochs, seed):
    last = sampling.rows(counts, epochs - 1, epochs, seed)
    in_order = [sampling.rows(counts, epoch, epochs, seed) for epoch in range(epochs)]
    for one, other in zip(last, in_order[-1], strict=True):
        assert one.tolist() == other.tolist()


def test_seeds_epochs_and_tasks_have_orders_of_their_own():
    found = [Sampling().rows([50, 50], epoch, 2, seed) for epoch in (0, 1) for seed in (0, 1)]
    assert len({tuple(rows.tolist()) for of_tasks in found for rows in of_tasks}) == 8


# --- joined tasks ----------------------------------------------------------------------------


def packed(task: int, lengths: list[int]) -> PackedExamples:
    """Token t of example i of task k is 10000 k + 100 i + t + 10, its segment is t modulo 2."""
    ids = [10000 * task + 100 * i + t + 10 for i, n in enumerate(lengths) for t in range(n)]
    segments = [t % 2 for n in lengths for t in range(n)]
    counts = np.array(lengths, "int32")
    starts = np.cumsum(counts, dtype="int64") - counts
    cut = np.arange(len(lengths)) % 2 == 0
    return PackedExamples(
        np.array(ids, "int32"), np.array(segments, "int32"), starts, counts, cut, PADDING
    )


def tasks() -> dict[str, Columns]:
    """One target of each kind: class ids, tags of tokens, two numbers, distributions of tokens."""
    draw = np.random.default_rng(5)
    lengths = [draw.integers(1, 10, count).tolist() for count in (3, 8, 14, 6)]
    every = [packed(task, own) for task, own in enumerate(lengths)]
    pairs = np.arange(28, dtype="float32").reshape(14, 2)
    ids = every[3].token_ids.astype("float32")
    return {
        "classes": Columns(every[0], np.array([5, 3, 4])),
        "tags": Columns(every[1], token_labels=every[1].token_ids % 6),
        "pairs": Columns(every[2], pairs),
        "shares": Columns(every[3], token_labels=np.stack([ids, 1 + 2 * ids], axis=1)),
    }


@pytest.fixture(scope="module")
def mixed() -> Mixture:
    return mixture(tasks())


def test_joined_examples(mixed):
    every = tasks()
    assert len(mixed) == 31 and mixed.counts == (3, 8, 14, 6)
    assert mixed.first_rows.tolist() == [0, 3, 11, 25] and list(mixed.columns) == list(every)
    row = 0
    for one in every.values():
        for start, length, cut in zip(one.packed.starts, one.packed.lengths, one.packed.truncated):
            cells = slice(mixed.packed.starts[row], mixed.packed.starts[row] + length)
            own = slice(start, start + length)
            assert mixed.packed.lengths[row] == length and mixed.packed.truncated[row] == cut
            for name in ("token_ids", "segment_ids"):
                found, expected = getattr(mixed.packed, name), getattr(one.packed, name)
                assert found[cells].tolist() == expected[own].tolist()
            row += 1
    assert mixed.packed.padding_id == PADDING


def test_a_task_without_examples():
    wrong = {**tasks(), "none": Columns(packed(4, []), np.zeros(0))}
    with pytest.raises(ValueError, match="each task must have examples. .*: none for 'none'"):
        mixture(wrong)


@pytest.mark.parametrize("cut", [{"batch_size": 4}, {"batch_size": None, "batch_tokens": 30}])
def test_plans(mixed, cut):
    plain = mixed.plan(None, 0, 1, **cut)
    assert sorted(np.concatenate(plain).tolist()) == list(range(31))
    longest = [int(mixed.packed.lengths[batch].max()) for batch in plain]
    assert longest == sorted(longest, reverse=True)
    sampling = Sampling("annealed")
    for epoch in range(3):
        batches = mixed.plan(sampling, epoch, 3, **cut, seed=2)
        drawn = sampling.rows(mixed.counts, epoch, 3, 2)
        expected = np.concatenate([first + own for first, own in zip(mixed.first_rows, drawn)])
        assert sorted(np.concatenate(batches)) == sorted(expected)
        for batch in batches:
            assert len(batch) <= (cut["batch_size"] or 31)
            assert len(batch) * mixed.packed.lengths[batch].max() <= cut.get("batch_tokens", 1000)
        again = mixed.plan(sampling, epoch, 3, **cut, seed=2)
        other = mixed.plan(sampling, epoch, 3, **cut, seed=3)
        as_lists = [[batch.tolist() for batch in plan] for plan in (batches, again, other)]
        assert as_lists[0] == as_lists[1] != as_lists[2]


def test_plans_of_whole_batches(mixed):
    found = mixed.plan(Sampling(), 0, 1, 4, only_whole=True)
    assert [len(batch) for batch in found] == [4] * 7
    assert len(set(np.concatenate(found).tolist())) == 28
    with pytest.raises(ValueError, match="`batch_size` must be at most the number of examples"):
        mixed.plan(Sampling(), 0, 1, 32, only_whole=True)


# --- batches ---------------------------------------------------------------------------------


def check_batch(inputs, targets) -> list[tuple[int, int]]:
    """Everything in a batch, by the ids of its tokens; returns the task and number of each row."""
    assert sorted(inputs) == ["padding_mask", "segment_ids", "task_ids", "token_ids"]
    dtypes = {name: column.dtype for name, column in inputs.items()}
    assert dtypes.pop("padding_mask") == bool and set(dtypes.values()) == {np.dtype("int32")}
    every, found = tasks(), []
    for row, task in enumerate(inputs["task_ids"].tolist()):
        real = inputs["padding_mask"][row]
        ids = inputs["token_ids"][row, real]
        number = int(ids[0]) % 10000 // 100
        one = list(every.values())[task]
        start, length = one.packed.starts[number], one.packed.lengths[number]
        assert ids.tolist() == one.packed.token_ids[start : start + length].tolist()
        assert real.tolist() == [place < length for place in range(len(real))]
        assert (inputs["token_ids"][row, ~real] == PADDING).all()
        segments = [place % 2 * (place < length) for place in range(len(real))]
        assert inputs["segment_ids"][row].tolist() == segments
        for other, (name, column) in enumerate(every.items()):
            target = targets[name][row]
            if column.token_labels is None:
                assert other != task or np.array_equal(target, column.labels[number])
                continue
            expected = np.full_like(target, 0 if target.ndim == 2 else -1)
            if other == task:
                expected[:length] = column.token_labels[start : start + length]
            np.testing.assert_array_equal(target, expected)
        found.append((task, number))
    return found


def rows_of(dataset) -> list[list[tuple[int, int]]]:
    return [check_batch(*batch) for batch in dataset.as_numpy_iterator()]


def test_each_example_once_without_sampling(mixed):
    dataset = mixed_dataset(mixed, batch_size=None, batch_tokens=40)
    found = rows_of(dataset)
    every = {(task, i) for task, count in enumerate(mixed.counts) for i in range(count)}
    assert len(found) > 3 and len(found) == int(dataset.cardinality())
    assert sorted(row for batch in found for row in batch) == sorted(every)
    assert rows_of(dataset) == found


def test_epochs_of_a_dataset_and_where_one_is_resumed(mixed):
    sampling, settings = Sampling("annealed"), {"batch_size": 4, "seed": 3}
    dataset = mixed_dataset(mixed, sampling, 3, **settings)
    passes = [rows_of(dataset) for _ in range(3)]
    for epoch, found in enumerate(passes):
        own = np.bincount([task for batch in found for task, _ in batch], minlength=4)
        assert own.tolist() == sampling.quotas(mixed.counts, epoch, 3)
        assert len(found) == int(dataset.cardinality()) == 8
    assert passes[0] != passes[1] != passes[2]
    resumed = mixed_dataset(mixed, sampling, 3, **settings, first_epoch=2, first_batch=3)
    assert rows_of(resumed) == passes[2][3:] and int(resumed.cardinality()) == 5
    other = mixed_dataset(mixed, sampling, 3, batch_size=4, seed=4)
    assert rows_of(other) != passes[0]


def test_weights_and_static_shapes(mixed):
    sampling = Sampling(weights=(1, 1, 1, 1))
    fixed = {"fixed_length": 12, "drop_remainder": True}
    dataset = mixed_dataset(mixed, sampling, batch_size=4, **fixed)
    inputs, targets = dataset.element_spec
    assert {name: spec.shape.as_list() for name, spec in inputs.items()} == {
        **dict.fromkeys(("token_ids", "segment_ids", "padding_mask"), [4, 12]),
        "task_ids": [4],
    }
    shapes = {name: spec.shape.as_list() for name, spec in targets.items()}
    assert shapes == {"classes": [4], "tags": [4, 12], "pairs": [4, 2], "shares": [4, 12, 2]}
    found = rows_of(dataset)
    assert [len(batch) for batch in found] == [4] * 7 and int(dataset.cardinality()) == 7
    own = np.bincount([task for batch in found for task, _ in batch], minlength=4)
    assert (own <= np.array([8, 8, 8, 7])).all()  # those of three rows are left out


def test_tokens_of_other_examples_between(mixed):
    """Of `select` the tokens of examples that were not chosen stay."""
    every = tasks()
    classes = every["classes"]
    some = Columns(classes.packed.select(np.array([2, 0])), classes.labels[[2, 0]])
    dataset = mixed_dataset(mixture({**every, "classes": some}), batch_size=40)
    (found,) = rows_of(dataset)
    assert sorted(number for task, number in found if task == 0) == [0, 2]
    assert len(found) == 30
