"""Names of classes in Keras before they are loaded: the table, the stand-ins, the hook."""

import os
import re
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from kbert import keras_names
from kbert.keras_names import register_names
from tests.small_pipelines import small_classifier


def test_the_table_names_every_class_that_registers(in_checkout):
    found = {}
    for file in sorted(in_checkout("kbert").glob("*/**/*.py")):
        classes = re.findall(r'"kbert"\)\nclass (\w+)', file.read_text(encoding="utf-8"))
        if classes:
            module = file.relative_to(in_checkout("kbert")).with_suffix("")
            found[".".join(module.parts)] = sorted(classes)
    assert {m: sorted(names.split()) for m, names in keras_names.NAMES.items()} == found


def test_a_stand_in_makes_what_its_class_makes(monkeypatch, tmp_path):
    model = small_classifier()
    model.compile()
    model.save(tmp_path / "model.keras")
    known = keras.saving.get_custom_objects()
    for name, value in list(known.items()):
        if name.startswith("kbert>") and isinstance(value, type):
            monkeypatch.delitem(known, name)
    with pytest.raises(TypeError, match="Could not locate class 'Classifier'"):
        keras.models.load_model(tmp_path / "model.keras")
    register_names()
    assert known["kbert>Classifier"] is not type(model)
    again = keras.models.load_model(tmp_path / "model.keras")
    assert type(again) is type(model)
    for one, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_class_that_is_loaded_is_not_replaced():
    before = dict(keras.saving.get_custom_objects())
    register_names()
    after = keras.saving.get_custom_objects()
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize(
    "imports",
    [
        "import kbert, keras",
        "import keras, kbert",
        # As TensorFlow does it, when it is imported before Keras.
        "import kbert, importlib.util; importlib.util.find_spec('keras'); import keras",
    ],
)
def test_names_are_there_whichever_is_imported_first(imports, tmp_path):
    """With a Keras that has nothing but the table of names, which takes no time to import."""
    (tmp_path / "keras").mkdir()
    saving = "NAMES = {}\ndef get_custom_objects():\n    return NAMES\n"
    (tmp_path / "keras" / "saving.py").write_text(saving)
    (tmp_path / "keras" / "__init__.py").write_text("from keras import saving\n")
    folders = [str(tmp_path), str(Path(keras_names.__file__).parents[1])]
    program = (
        f"import sys\nsys.path[:0] = {folders}\n"
        f"{imports}\n"
        "print(sorted(keras.saving.NAMES)[0], 'kbert.models.bert' in sys.modules)\n"
        "print([finder for finder in sys.meta_path if 'kbert' in type(finder).__module__])"
    )
    run = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True)
    assert run.stdout.split("\n")[:2] == ["kbert>AdamW False", "[]"], run.stderr


def test_keras_loads_without_packages_that_others_import_all_the_same(tmp_path):
    """With a Keras that only notes what it could import, as the real one takes seconds."""
    (tmp_path / "keras").mkdir()
    (tmp_path / "keras" / "saving.py").write_text("def get_custom_objects(): return {}\n")
    (tmp_path / "keras" / "__init__.py").write_text(
        "there = []\n"
        "for name in ('hidden', 'colorsys'):\n"
        "    try:\n"
        "        __import__(name)\n"
        "        there.append(name)\n"
        "    except ImportError:\n"
        "        pass\n"
    )
    (tmp_path / "hidden.py").touch()
    program = (
        "import kbert.keras_names as names\n"
        "names.load_keras_without('hidden', 'no_such_package')\n"
        "import keras, hidden\n"
        "print(keras.there, hidden.__name__)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(keras_names.__file__).parent.parent}"},
    )
    assert run.stdout == "['colorsys'] hidden\n", run.stderr
