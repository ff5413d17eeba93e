"""`kbert.load` of models and of exports."""

import re
from pathlib import Path

import pytest

import kbert
from kbert.serving.export.multi_task_export import export_together
from kbert.serving.loading.exported import Exported, ExportedTask, load
from kbert.tasks.classification.model import Classifier


def test_a_model_and_its_export(classifier: Classifier, exported_path: Path, tmp_path: Path):
    classifier.save_pretrained(tmp_path / "model")
    assert isinstance(load(tmp_path / "model"), Classifier)
    assert kbert.load is load
    for path in (exported_path, exported_path.parent):
        assert isinstance(load(path), Exported)
    with pytest.raises(ValueError, match="must have no further arguments.*Received: dtype for"):
        load(exported_path, dtype="float32")


def test_a_folder_of_exports_names_them(exported_path: Path, tmp_path: Path):
    base = exported_path.parents[1]
    message = f"`directory` must be one export. Received: {base}, which holds exports: {base}/"
    with pytest.raises(ValueError, match=re.escape(message) + r"\w"):
        load(base)
    with pytest.raises(ValueError, match="must be a checkpoint"):
        load(tmp_path)


def test_what_is_no_path():
    for wrong in (None, 3):
        with pytest.raises(TypeError, match=f"`directory` must be a path .* Received: {wrong}"):
            kbert.load(wrong)
    with pytest.raises(ValueError, match="`directory` must be a path .* Received: an empty one"):
        kbert.load("")


def test_several_tasks_by_name(classifier: Classifier, exported: Exported, tmp_path: Path):
    models = {"one": classifier, "other": classifier}
    found = load(export_together(models, tmp_path, max_batch_size=1))
    assert list(found) == ["one", "other"] and isinstance(found["one"], ExportedTask)
    assert found["other"].labels == ["no", "yes", "ja"]
    (expected,) = exported.answers(["a good film"])
    (told,) = found["other"].answers(["a good film"])
    assert told["label"] == expected["label"]
    assert found["one"].predict(["a good film"])["scores"].shape == (1, 3)
