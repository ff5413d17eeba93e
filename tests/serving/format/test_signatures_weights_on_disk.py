"""The weights of an export, counted."""

from pathlib import Path

import pytest
import tensorflow as tf

from kbert.serving.format.signatures import stored_twice, weights_of


def save(folder: Path, **arrays: tf.Tensor) -> Path:
    module = tf.Module()
    for name, array in arrays.items():
        setattr(module, name, tf.Variable(array))
    tf.train.Checkpoint(module).write(str(folder / "variables" / "variables"))
    return folder


def test_numbers_and_types_are_counted(tmp_path: Path):
    half = tf.ones((4, 3), tf.bfloat16)
    found = weights_of(save(tmp_path, a=tf.range(10.0), b=half, c=tf.constant([1, 2])))
    # 10 of four bytes, 12 of two, 2 of four.
    assert (found.arrays, found.parameters, found.bytes) == (3, 24, 72)
    assert found.dtypes == {"bfloat16": 12, "float32": 10, "int32": 2}


def test_an_export_without_weights(tmp_path: Path):
    assert weights_of(tmp_path).parameters == 0
    assert stored_twice(tmp_path) == []


def test_copies_are_found(tmp_path: Path):
    large = tf.reshape(tf.range(8192.0), (64, 128))
    kept = {"other": large + 1.0, "turned": tf.reshape(large, (128, 64))}
    alike = {"zeros": tf.zeros((64, 128)), "ones": tf.zeros((64, 128))}
    small = {"bias": tf.range(64.0), "beta": tf.range(64.0)}
    assert stored_twice(save(tmp_path / "1", one=large, **kept, **alike, **small)) == []
    (names,) = stored_twice(save(tmp_path / "2", one=large, two=large, **kept))
    assert [name.split("/")[1] for name in names] == ["one", "two"] or len(names) == 2
    assert any("one" in name for name in names) and any("two" in name for name in names)


def test_damaged_weights_are_told(tmp_path: Path):
    save(tmp_path, one=tf.range(8192.0))
    data = tmp_path / "variables" / "variables.data-00000-of-00001"
    content = bytearray(data.read_bytes())
    content[5000] ^= 1
    data.write_bytes(content)
    with pytest.raises(ValueError, match="must be readable"):
        stored_twice(tmp_path)
    (tmp_path / "variables" / "variables.index").write_bytes(b"no index")
    with pytest.raises(ValueError, match="must hold weights"):
        weights_of(tmp_path)
