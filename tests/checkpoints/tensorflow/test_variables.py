"""Damage is told apart from absence; the readers' own tests cover whole files."""

from pathlib import Path

import pytest

from kbert.checkpoints.tensorflow.variables import TensorflowVariables

tf = pytest.importorskip("tensorflow")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_variables_and_damage(tmp_path: Path) -> None:
    prefix = tf.train.Checkpoint(a=tf.Variable(tf.range(1000.0))).save(str(tmp_path / "ckpt"))
    key = "a/.ATTRIBUTES/VARIABLE_VALUE"
    variables = TensorflowVariables(prefix, "Reading")
    assert variables.shapes[key] == (1000,)
    assert variables.load(key)[:3].tolist() == [0.0, 1.0, 2.0]
    assert variables.string("_CHECKPOINTABLE_OBJECT_GRAPH").startswith(b"\n")
    _cut(Path(f"{prefix}.data-00000-of-00001"))
    with pytest.raises(ValueError, match="ckpt-1` must be a whole checkpoint of TensorFlow; its"):
        TensorflowVariables(prefix, "Reading").load(key)
    _cut(Path(f"{prefix}.index"))
    with pytest.raises(ValueError, match="were cut off. Received: not an index: it does not end"):
        TensorflowVariables(prefix, "Reading")
