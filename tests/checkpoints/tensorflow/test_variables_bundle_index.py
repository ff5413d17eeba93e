"""The index of a checkpoint beside TensorFlow's own reading of it."""

from pathlib import Path

import pytest

from kbert.checkpoints.tensorflow.variables import read_index

tf = pytest.importorskip("tensorflow")


def test_index_is_as_tensorflow_reads_it(tmp_path: Path) -> None:
    # Many keys with long shared beginnings make several blocks, of several restarts each.
    dtypes = ("float32", "float16", "float64", "bfloat16", "int64", "int32", "bool")
    names = [f"model/encoder/layer_{i:03d}/attention/{dtypes[i % 7]}" for i in range(400)]
    shapes = [tuple(range(i % 4)) if i % 3 else (i, 300) for i in range(400)]
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "m"),
        tensor_names=names,
        shape_and_slices=[""] * 400,
        tensors=[tf.zeros(s, n.rpartition("/")[2]) for n, s in zip(names, shapes, strict=True)],
    )
    entries = read_index(str(tmp_path / "m"))
    reader = tf.train.load_checkpoint(str(tmp_path / "m"))
    shapes_there = reader.get_variable_to_shape_map()
    dtypes_there = reader.get_variable_to_dtype_map()
    assert {key: list(entry.shape) for key, entry in entries.items()} == shapes_there
    assert {k: e.dtype for k, e in entries.items()} == {k: d.name for k, d in dtypes_there.items()}
    assert (tmp_path / "m.index").stat().st_size > 8192, "one block only"


def test_an_index_that_lost_or_changed_a_byte_is_told(tmp_path: Path) -> None:
    prefix = tf.train.Checkpoint(a=tf.Variable(tf.range(9.0))).save(str(tmp_path / "ckpt"))
    index = Path(f"{prefix}.index")
    whole = index.read_bytes()
    footer = len(whole) - 48
    damaged = [whole[begin:] for begin in range(1, len(whole))]
    damaged += [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(footer)]
    for content in damaged:
        index.write_bytes(content)
        with pytest.raises(ValueError, match="not an index|cut off|compressed|checksum|whole"):
            read_index(prefix)
