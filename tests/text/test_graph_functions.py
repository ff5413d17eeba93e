import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.graph_functions import (
    cached_graph,
    checked_text,
    kept_values,
    map_in_chunks,
    places_in_chunks,
    row_ids,
)


class Doubling:
    """Counts how often its function is run as Python."""

    def __init__(self):
        self.times, self.runs = 2, 0

    def more(self, x):
        self.runs += 1
        return {"more": x * self.times}

    def less(self, x):
        return {"less": x / self.times}


def test_a_function_is_traced_once_until_a_setting_changes():
    model, specs = Doubling(), [tf.TensorSpec((None,), tf.float32)]
    graph = cached_graph(model, model.more, [model.times], specs)
    for values in ([1.0], [1.0, 2.0]):
        assert graph(tf.constant(values))["more"].numpy().tolist() == [2 * v for v in values]
    assert model.runs == 1 and cached_graph(model, model.more, [model.times], specs) is graph
    model.times = 3
    again = cached_graph(model, model.more, [model.times], specs)
    assert again(tf.constant([1.0]))["more"].numpy() == 3
    assert model.runs == 2


def test_functions_and_models_have_graphs_of_their_own():
    model, specs = Doubling(), [tf.TensorSpec((None,), tf.float32)]
    graph = cached_graph(model, model.more, (), specs)
    assert cached_graph(model, model.less, (), specs)(tf.constant([4.0]))["less"].numpy() == 2
    assert cached_graph(model, model.more, (), specs) is graph
    other = Doubling()
    assert cached_graph(other, other.more, (), specs) is not graph


@given(st.lists(st.lists(st.booleans(), max_size=5), max_size=6))
def test_rows_and_kept_values_are_those_of_ragged_tensors(rows):
    ragged = tf.RaggedTensor.from_row_lengths(
        tf.constant(sum(rows, []), tf.bool), tf.constant([len(row) for row in rows], tf.int64)
    )
    numbers = ragged.with_values(tf.range(sum(map(len, rows))))
    assert row_ids(ragged).numpy().tolist() == [
        row for row, values in enumerate(rows) for _ in values
    ]
    begins = [sum(map(len, rows[:row])) for row in range(len(rows))]
    expected = [
        [begin + place for place, is_kept in enumerate(row) if is_kept]
        for begin, row in zip(begins, rows, strict=True)
    ]
    assert kept_values(numbers, ragged.values).to_list() == expected


@given(st.lists(st.integers(1, 9), max_size=6), st.integers(1, 40))
def test_one_chunk_without_a_loop_gives_what_the_loop_gives(lengths, cells):
    chunks = []

    def function(chosen):
        chunks.append(chosen.numpy().tolist())
        return chosen, tf.gather(lengths, chosen) * 2

    lengths = tf.constant(lengths, tf.int32)
    outputs = [tf.TensorSpec((None,), tf.int32)] * 2
    found = map_in_chunks(function, lengths, cells, outputs, twice=True)
    looped = map_in_chunks(function, lengths, cells, outputs)
    assert [one.numpy().tolist() for one in found] == [one.numpy().tolist() for one in looped]
    assert chunks[: len(chunks) // 2] == chunks[len(chunks) // 2 :]
    doubled = tf.gather(found[1], places_in_chunks(lengths))
    assert doubled.numpy().tolist() == [2 * length for length in lengths.numpy().tolist()]


def test_a_graph_of_one_chunk_runs_no_loop():
    outputs = [tf.TensorSpec((None,), tf.int32)]

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.int32)])
    def alone(lengths):
        return map_in_chunks(lambda chosen: [chosen], lengths, 8, outputs, twice=True)[0]

    nodes = {node.op for node in alone.get_concrete_function().graph.as_graph_def().node}
    assert "While" not in nodes and nodes & {"If", "StatelessIf"}  # it is in a branch
    for lengths, order in (([3, 4], [1, 0]), ([8, 1, 9], [2, 0, 1]), ([], [])):
        assert alone(tf.constant(lengths, tf.int32)).numpy().tolist() == order


def test_a_single_text_comes_from_a_dataset_without_batches():
    with pytest.raises(ValueError, match=r"shape=\(\); a dataset must be batched"):
        checked_text(tf.constant("a"))
    assert checked_text([]).dtype == tf.string
    for wrong in (None, ["a", None], ["a", 3]):
        with pytest.raises(TypeError, match="`text` must be a list of strings. Received: "):
            checked_text(wrong)
    with pytest.raises(ValueError, match=r"shape \(B,\). Received: shape=\(1, 1\)$"):
        checked_text(tf.constant([["a"]]))
