"""batching_params.pbtxt, as models by others have it."""

from pathlib import Path

import pytest

from kbert.serving.format.batching_file import BATCHING_FILE, Batching, read_batching


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
