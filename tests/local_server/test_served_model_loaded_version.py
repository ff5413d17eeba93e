"""A version in memory: its warm-up has run, and TensorFlow's words are cut to what helps."""

from pathlib import Path

import pytest
import tensorflow as tf

from kbert.local_server.served_model import LoadedVersion, first_line
from kbert.serving.format.recorded_requests import WARMUP_FILE, read_warmup, write_warmup


def test_it_knows_what_the_export_says(meter: Path):
    version = LoadedVersion(7, meter)
    assert version.number == 7 and version.about["name"] == "meter"
    assert version.batching is None and version.model.joins_requests


def test_a_warm_up_that_fails_makes_the_loading_fail(meter: Path):
    records = read_warmup(meter)
    assert records is not None
    for record in records:
        object.__setattr__(record, "signature", "gone")
    write_warmup(meter, records)
    with pytest.raises(RuntimeError, match="warm-up record 1 fails: 'gone'"):
        LoadedVersion(1, meter)
    (meter / WARMUP_FILE).unlink()
    assert LoadedVersion(1, meter).queue is None


def test_a_warm_up_without_a_name_is_for_the_main_signature(meter: Path):
    records = read_warmup(meter)
    assert records is not None
    main = [record for record in records if record.signature == "serving_default"]
    for record in main:
        object.__setattr__(record, "signature", "")
    write_warmup(meter, main)
    assert LoadedVersion(1, meter).number == 1


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
        ("assertion failed: [a] [2]", "assertion failed: [a] [2]"),
    ],
)
def test_nodes_before_an_error_are_left_out(message: str, shown: str):
    assert first_line(tf.errors.InvalidArgumentError(None, None, message)) == shown


def test_the_first_line_of_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.function(lambda x: tf.gather([1, 2], x))(9)
    told = first_line(caught.value)
    assert "\n" not in told and ".py" not in told and len(told) <= 300 and told
    assert first_line(ValueError("\n\n one\n two")) == "one"
    assert first_line(ValueError()) == "ValueError"
