from pathlib import Path

import numpy as np

from kbert.checkpoints.arrays.checkpoint import Checkpoint


def test_defaults_are_not_shared() -> None:
    a, b = Checkpoint({}, {}), Checkpoint({}, {})
    a.report.append("x")
    a.heads["x"] = np.zeros(1)
    assert b.report == [] and b.heads == {}
    assert (a.format, a.lowercase, a.vocabulary_path) == ("kbert", True, None)


def test_the_pooler() -> None:
    assert Checkpoint({}, {"pooler/kernel": np.zeros((1, 1))}).has_pooler
    assert not Checkpoint({}, {}).has_pooler


def test_the_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"a\r\nb")
    assert Checkpoint({}, {}).vocabulary_bytes() is None
    assert Checkpoint({}, {}, vocabulary_path=path).vocabulary_bytes() == b"a\r\nb"
    assert Checkpoint({}, {}, vocabulary_tokens=("é", "b")).vocabulary_bytes() == b"\xc3\xa9\nb\n"
