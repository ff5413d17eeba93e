import sys

import pytest

from kbert.checkpoints.tensorflow.variables import import_tensorflow


def test_tensorflow_is_returned() -> None:
    tf = pytest.importorskip("tensorflow")
    assert import_tensorflow("Reading") is tf


def test_without_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ImportError, match="Reading it needs TensorFlow: pip install tensorflow"):
        import_tensorflow("Reading it")
