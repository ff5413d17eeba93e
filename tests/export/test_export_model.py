"""The script that exports a run."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbert.models.bert import Bert
from kbert.serving.loading.exported import load_export
from kbert.tasks.classification.model import Classifier
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece


@pytest.fixture(scope="module")
def script(in_checkout: Callable[[str], Path]) -> dict[str, Any]:
    return runpy.run_path(str(in_checkout("export/export_model.py")))


@pytest.mark.slow
def test_a_saved_model_is_exported(script, tmp_path: Path, capsys):
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad"])
    encoder = Bert(len(vocabulary), 8, 1, 2, 16, 16)
    model = Classifier(encoder, WordPiece(vocabulary), ["no", "yes"], 8)
    model.save_pretrained(tmp_path / "run")

    script["main"]([str(tmp_path / "run"), str(tmp_path / "base"), "--name", "m"])
    folder = tmp_path / "base" / "m" / "1"
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == str(folder)
    assert "FastWordpieceTokenizeWithOffsets" in printed[-2]
    found = load_export(folder).run({"text": ["good", "bad bad"]})["scores"]
    assert found.ravel().tolist() == pytest.approx(
        model.predict(["good", "bad bad"]).ravel().tolist(), abs=1e-6
    )

    arguments = [str(tmp_path / "run"), str(tmp_path / "base"), "--version", "4"]
    script["main"](arguments)
    assert load_export(tmp_path / "base" / "classifier").metadata["version"] == 4
    with pytest.raises(SystemExit, match="export_model: `version` must not be there yet"):
        script["main"](arguments)


def test_a_folder_without_a_model_is_told(script, tmp_path: Path):
    with pytest.raises(SystemExit, match="export_model: "):
        script["main"]([str(tmp_path), str(tmp_path / "base")])
