"""Texts as rows of ids, and what a graph holds of them."""

import numpy as np
import tensorflow as tf

from kbert.data.batches.packed_examples import TokenRows, as_tensors, padded_rows, token_rows
from kbert.text.subword_training import train_subwords


def test_texts_end_with_the_end_and_are_cut(tmp_path):
    subwords = train_subwords([["a man and a dog"] * 4], tmp_path / "m.model", vocabulary_size=18)
    packed = token_rows(subwords, ["a man", "", "a dog and a man"], max_length=4)
    whole = subwords.tokenize(tf.constant(["a man", "", "a dog and a man"])).to_list()
    cut = [len(ids) > 3 for ids in whole]
    assert cut[2] and packed.truncated.tolist() == cut
    for i, ids in enumerate(whole):
        end = packed.starts[i] + packed.lengths[i]
        assert packed.token_ids[packed.starts[i] : end].tolist() == [*ids[:3], subwords.end_id]
    ids, real = padded_rows(packed, tf.constant([1, -1], tf.int64), 0)
    assert ids.numpy().tolist() == [[subwords.end_id], [subwords.padding_id]]
    assert real.numpy().tolist() == [[True], [False]]


def test_a_long_run_of_unknown_letters_is_quick(tmp_path):
    """SentencePiece takes 20 s for a megabyte of them, in the square of their number."""
    subwords = train_subwords([["a man and a dog"] * 4], tmp_path / "m.model", vocabulary_size=18)
    packed = token_rows(subwords, ["a man", "\u4e00" * 2_000_000], max_length=4)
    assert packed.truncated.tolist() == [False, True] and packed.lengths.tolist()[1] <= 4


def test_a_graph_reads_texts_of_any_size():
    """As constants of the graph they would end at 2 GB."""
    count = np.full(1000, 100, "int32")
    ids, starts = np.arange(100_000, dtype="int32"), np.cumsum(count, dtype="int64") - 100
    packed = TokenRows(ids, starts, count, np.zeros(1000, bool), 1, 0)
    tensors = as_tensors(packed)
    asked, rows = tf.constant([7, 999], tf.int64), tf.TensorSpec((None,), tf.int64)
    graph = tf.function(lambda rows: padded_rows(tensors, rows, 0)).get_concrete_function(rows)
    assert graph.graph.as_graph_def().ByteSize() < 20_000
    for found, expected in zip(graph(asked), padded_rows(packed, asked, 0)):
        np.testing.assert_array_equal(found, expected)
    assert as_tensors(None) is None
