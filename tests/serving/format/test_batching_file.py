"""batching_params.pbtxt, written and read."""

from pathlib import Path

import pytest
import tensorflow as tf

from kbert.serving.format.batching_file import (
    BATCHING_FILE,
    Batching,
    batching_for,
    read_batching,
    write_batching,
)
from kbert.serving.format.signatures import Signature, SignatureTensor


def signature(**shapes: tuple[int | None, ...]) -> dict[str, Signature]:
    tensors = {name: SignatureTensor(f"{name}:0", tf.int32, s) for name, s in shapes.items()}
    return {"serving_default": Signature(tensors, {})}


def test_the_file_of_a_model_on_texts(tmp_path: Path):
    batching = batching_for(signature(text=(None,)))
    assert batching is not None
    write_batching(tmp_path, batching)
    # The text format of protocol buffers, by hand from the message's definition.
    assert (tmp_path / BATCHING_FILE).read_text() == (
        "max_batch_size { value: 32 }\n"
        "batch_timeout_micros { value: 2000 }\n"
        "max_enqueued_batches { value: 16 }\n"
        "allowed_batch_sizes: 1\nallowed_batch_sizes: 2\nallowed_batch_sizes: 4\n"
        "allowed_batch_sizes: 8\nallowed_batch_sizes: 16\nallowed_batch_sizes: 32\n"
        "pad_variable_length_inputs: false\n"
    )
    assert read_batching(tmp_path) == batching
    assert batching.as_json()["allowed_batch_sizes"] == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize(
    "most, sizes",
    [(1, (1,)), (2, (1, 2)), (3, (1, 2, 3)), (8, (1, 2, 4, 8)), (12, (1, 2, 4, 8, 12))],
)
def test_the_sizes_double_up_to_the_most(most: int, sizes: tuple[int, ...]):
    batching = batching_for(signature(text=(None,)), most)
    assert batching is not None and batching.allowed_batch_sizes == sizes


def test_inputs_of_free_length():
    tokens = signature(token_ids=(None, None), lengths=(None,))
    batching = batching_for(tokens)
    assert batching is not None and batching.pad_variable_length_inputs
    # What a server appends to choices would be one choice more.
    assert batching_for(signature(context=(None,), choices=(None, None))) is None
    fixed = batching_for(signature(x=(None, 3)))
    assert fixed is not None and not fixed.pad_variable_length_inputs
    assert batching_for(tokens, 0) is None
    with pytest.raises(ValueError, match="`max_batch_size` must not be negative"):
        batching_for(tokens, -1)


def test_a_file_by_another_hand(tmp_path: Path):
    assert read_batching(tmp_path) is None
    # From the guide of TF Serving, with its comments, one line and all.
    (tmp_path / BATCHING_FILE).write_text(
        "max_batch_size { value: 128 }  # rows\nbatch_timeout_micros { value: 0 }\n"
        "num_batch_threads { value: 8 } thread_pool_name { value: \"mine\" }\n"
        "enable_large_batch_splitting { value: False }"
    )
    assert read_batching(tmp_path) == Batching(128, 0, 10, (128,), False)


@pytest.mark.parametrize(
    "text, message",
    [
        ("max_batch_size: 32", "must hold BatchingParameters"),
        ("max_batch_sise { value: 32 }", "must hold BatchingParameters"),
        ("max_batch_size { value: 4 } allowed_batch_sizes: 8", "must rise to max_batch_size=4"),
        ("max_batch_size { value: 4 } allowed_batch_sizes: [2, 2, 4]", "must rise"),
        ("max_batch_size { value: 0 }", "`max_batch_size` must be positive"),
        ("batch_timeout_micros { value: -1 }", "must not be negative"),
    ],
)
def test_a_file_that_a_server_would_not_take(tmp_path: Path, text: str, message: str):
    (tmp_path / BATCHING_FILE).write_text(text)
    with pytest.raises(ValueError, match=message):
        read_batching(tmp_path)
