"""TensorFlow's words are cut to what helps."""

from pathlib import Path

import pytest
import tensorflow as tf

from kbert.serving.loading.graph_errors import first_line


def test_what_was_wrong_stands_behind_the_nodes(tmp_path: Path):
    """As TensorFlow tells it of a graph that was loaded, without the lines of the program."""

    class Rows(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec((None,), tf.int32)])
        def rows(self, x):
            return tf.gather(tf.zeros((32, 2)), x)

    tf.saved_model.save(Rows(), str(tmp_path))
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.saved_model.load(str(tmp_path)).rows(tf.constant([32]))
    assert first_line(caught.value) == "indices[0] = 32 is not in [0, 32)"


@pytest.mark.parametrize(
    "message, shown",
    [
        ("{{function_node __inference_f_7}} assertion failed: [`x` must be 1. Received: 2]\n\t",
         "`x` must be 1. Received: 2"),
        ("{{function_node f}} {{node g}} no such row", "no such row"),
        ("`2` must be. Received: {{function_node f}} no file", "`2` must be. Received: no file"),
        ("assertion failed: [a] [2]", "assertion failed: [a] [2]"),
    ],
)
def test_nodes_are_left_out(message: str, shown: str):
    assert first_line(tf.errors.InvalidArgumentError(None, None, message)) == shown


def test_the_first_line_of_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.function(lambda x: tf.gather([1, 2], x))(9)
    told = first_line(caught.value)
    assert "\n" not in told and ".py" not in told and told
    assert first_line(ValueError("\n\n one\n two")) == "one"
    assert first_line(ValueError()) == "ValueError"
