import pytest
import tensorflow as tf

from kbert.training.pretraining.sources import found_records


def test_records_are_anywhere_that_tensorflow_reads(tmp_path):
    """TensorFlow's file system in memory stands for a bucket."""
    tf.io.gfile.makedirs("ram://bucket/folder")
    for name in ("b-1.tfrecord", "b-0.tfrecord", "other"):
        with tf.io.gfile.GFile(f"ram://bucket/folder/{name}", "w") as file:
            file.write("x")
    (tmp_path / "a.tfrecord").touch()
    local = str(tmp_path / "a.tfrecord")
    names = [f"ram://bucket/folder/b-{number}.tfrecord" for number in (0, 1)]
    patterns = [names[1], "ram://bucket/folder/b-*.tfrecord", str(tmp_path / "*.tfrecord")]
    assert found_records("records", patterns) == [names[1], names[0], local]
    for pattern in ("ram://bucket/folder/c-*", "ram://bucket/none", "ram://bucket/folder"):
        with pytest.raises(FileNotFoundError, match="`records` must be files, or patterns that"):
            found_records("records", [pattern])
    with pytest.raises(OSError, match="in places that can be reached. Received: 'abc://x/y'. File"):
        found_records("records", ["abc://x/y"])
