"""Answers within an Apache Beam pipeline."""

import ast
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from kbert.serving.loading.exported import Exported


def test_without_beam(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    monkeypatch.delitem(sys.modules, "kbert.serving.batch_prediction.beam_transform", raising=False)
    with pytest.raises(ImportError, match=r'pip install "\.\[beam\]"'):
        importlib.import_module("kbert.serving.batch_prediction.beam_transform")


def ran(folder: Path, elements: list[Any], transform: Any) -> list[Any]:
    """What a pipeline makes of elements, on this machine: workers share nothing but files."""
    import apache_beam as beam

    with beam.Pipeline(runner="DirectRunner") as pipeline:
        found = pipeline | beam.Create(elements) | transform
        _ = found | beam.Map(repr) | beam.io.WriteToText(str(folder / "found"))
    files = sorted(folder.glob("found*"))
    lines = "".join(file.read_text("utf-8") for file in files).split("\n")
    return [ast.literal_eval(line) for line in lines if line]


def test_each_element_gets_its_answer(exported: Exported, texts: list[Any], tmp_path: Path):
    pytest.importorskip("apache_beam", reason='pip install ".[beam]"')
    from kbert.serving.batch_prediction.beam_transform import PredictText

    own = {"label": "mine", "predicted_scores": "theirs"}
    rows = [{"id": i, "text": text, **own} for i, text in enumerate(texts)]
    answered = ran(tmp_path, rows, PredictText(exported.path, max_batch_size=5))
    found = sorted(answered, key=lambda row: row["id"])
    expected = exported.answers(texts)
    assert [row["text"] for row in found] == texts
    assert all(own.items() <= row.items() for row in found)
    assert [row["predicted_label"] for row in found] == [one["label"] for one in expected]
    for row, one in zip(found, expected):
        assert row["scores"] == pytest.approx(one["scores"], abs=1e-5)


def test_texts_alone(exported: Exported, tmp_path: Path):
    pytest.importorskip("apache_beam", reason='pip install ".[beam]"')
    from kbert.serving.batch_prediction.beam_transform import PredictText

    (found,) = ran(tmp_path, ["a good film"], PredictText(exported.path.parent))
    assert found["text"] == "a good film"
    assert found["label"] == exported.answers(["a good film"])[0]["label"]


def test_an_export_in_a_bucket(exported: Exported, tmp_path: Path):
    pytest.importorskip("apache_beam", reason='pip install ".[beam]"')
    from kbert.serving.batch_prediction.beam_transform import PredictText

    for file in (path for path in exported.path.rglob("*") if path.is_file()):
        name = f"ram://exports/topics/7/{file.relative_to(exported.path)}"
        tf.io.gfile.makedirs(name.rpartition("/")[0])
        tf.io.gfile.copy(str(file), name)
    tf.io.gfile.makedirs("ram://exports/topics/8")  # being copied: no graph yet
    (found,) = ran(tmp_path, ["a good film"], PredictText("ram://exports/topics"))
    assert found["label"] == exported.answers(["a good film"])[0]["label"]
    with pytest.raises(FileNotFoundError, match="`path` must be an export.*'ram://exports/none'"):
        PredictText("ram://exports/none/")


def test_what_is_refused(exported: Exported, tmp_path: Path):
    pytest.importorskip("apache_beam", reason='pip install ".[beam]"')
    from kbert.serving.batch_prediction.beam_transform import PredictText, _Answer

    with pytest.raises(FileNotFoundError, match="`path` must be an export"):
        PredictText(tmp_path)
    with pytest.raises(ValueError, match="`max_batch_size` must be positive. Received: max_batch"):
        PredictText(exported.path, max_batch_size=0)
    answer = _Answer(str(exported.path), "serving_default")
    answer.setup()
    with pytest.raises(ValueError, match="each element must be a dict with `text`, or a text"):
        list(answer.process([{"txt": "a"}]))
