import subprocess
import sys

import pytest

from kbert.checkpoints.tensorflow_import import import_tensorflow


def test_tensorflow_is_returned() -> None:
    tf = pytest.importorskip("tensorflow")
    assert import_tensorflow("Reading") is tf


def test_without_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ImportError, match="Reading it needs TensorFlow: pip install tensorflow"):
        import_tensorflow("Reading it")


def test_the_room_loads_no_tensorflow() -> None:
    code = (
        "import sys\n"
        "import kbert.checkpoints.read_checkpoint\n"
        "print([name for name in ('tensorflow', 'keras', 'tf_keras') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
