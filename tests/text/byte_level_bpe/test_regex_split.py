"""The op alone cuts as tensorflow-text's function does, without its checks."""

import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from kbert.text.byte_level_bpe.regex_split import regex_split

ROWS = ["one two", "", "x", "ab12 c", "  a", "é b"]


@pytest.mark.parametrize(("delimiter", "kept"), [("[a-z]+", "(?s).*"), ("[a-z]", ""), (" ", "x")])
def test_as_the_function_cuts(delimiter: str, kept: str) -> None:
    expected = tf_text.regex_split_with_offsets(ROWS, delimiter, kept)[0]
    found = regex_split(tf.constant(ROWS), f"({delimiter})", f"({kept})")
    assert found.to_list() == expected.to_list()


def test_a_delimiter_of_nothing_at_the_end_of_each_word() -> None:
    found = regex_split(tf.constant(["ab c", "", " d1"]), r"\A(?: ?[a-z]+|[0-9])()", "(x)")
    assert found.to_list() == [[b"ab", b" c"], [], [b" d", b"1"]]


def test_there_are_no_checks_in_the_graph() -> None:
    """Each was a condition with two functions, run at each call."""
    spec = tf.TensorSpec([None], tf.string)
    split = tf.function(lambda rows: regex_split(rows, "( )", "(x)"), input_signature=[spec])
    graph = split.get_concrete_function().graph.as_graph_def()
    assert not graph.library.function
    assert not [node.name for node in graph.node if "Assert" in node.op]
