import json

import numpy as np
import pytest
from typer.testing import CliRunner

from kbert.checkpoints.translation_folder import read_translation
from kbert.cli.actions.conversion import convert_checkpoint
from kbert.cli.actions.model_kinds import is_translator
from kbert.cli.main import app
from tests.checkpoints.synthetic_marian import write_marian


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    return write_marian(tmp_path_factory.mktemp("marian") / "model")


def test_what_is_a_translator(finished_run, finished_translation, marian):
    assert is_translator(finished_translation / "model") and is_translator(marian)
    assert not is_translator(finished_run / "model")


def test_a_run_becomes_a_folder_of_ctranslate2(finished_translation, tmp_path):
    pytest.importorskip("ctranslate2", reason="needs the extra ctranslate2")
    arguments = [str(finished_translation), str(tmp_path / "to"), "--format", "ctranslate2"]
    result = CliRunner().invoke(app, ["convert", *arguments])
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["source_format"], found["target_format"]) == ("kbert", "ctranslate2")
    # Both compute in float32, in another order.
    assert found["largest_absolute_difference"]["log_probabilities"] < 1e-4
    assert found["translate_batch"] == json.loads((tmp_path / "to" / "search.json").read_text())
    assert found["translate_batch"]["num_hypotheses"] == 2
    assert "max_decoding_length" in found["notes"][0]
    model = (finished_translation / "model" / "source.model").read_bytes()
    assert (tmp_path / "to" / "source.model").read_bytes() == model


def test_a_difference_would_be_seen(finished_translation, tmp_path, monkeypatch):
    """Another matrix in the decoder is another model."""
    pytest.importorskip("ctranslate2", reason="needs the extra ctranslate2")
    from kbert.cli.actions import conversion as translator_conversion

    write = translator_conversion.save_ctranslate2

    def write_wrong(model, target, overwrite):
        kernel = model.transformer.decoder_blocks[0].feed_forward.output_linear.kernel
        before = np.asarray(kernel)
        kernel.assign(before * 2.0)
        write(model, target, overwrite)
        kernel.assign(before)

    monkeypatch.setattr(translator_conversion, "save_ctranslate2", write_wrong)
    found = convert_checkpoint(
        str(finished_translation), tmp_path / "to", "ctranslate2", overwrite=False
    )
    assert found["largest_absolute_difference"]["log_probabilities"] > 1e-3


def test_marian_becomes_a_folder_of_kbert(marian, tmp_path):
    found = convert_checkpoint(str(marian), tmp_path / "to", "kbert", overwrite=False)
    assert (found["source_format"], found["target_format"]) == ("marian", "kbert")
    assert found["largest_absolute_difference"] == {"log_probabilities": 0.0}
    assert read_translation(tmp_path / "to").settings["beam_size"] == 4
    with pytest.raises(FileExistsError, match="must not exist yet"):
        convert_checkpoint(str(marian), tmp_path / "to", "kbert", overwrite=False)
    again = convert_checkpoint(str(tmp_path / "to"), tmp_path / "to", "kbert", overwrite=True)
    assert again["largest_absolute_difference"] == {"log_probabilities": 0.0}


def test_formats_of_encoders_are_not_for_translators(marian, finished_run, tmp_path):
    message = "must be one of kbert, ctranslate2 for a translator. Received: 'huggingface'"
    with pytest.raises(ValueError, match=message):
        convert_checkpoint(str(marian), tmp_path / "to", "huggingface", overwrite=False)
    with pytest.raises(ValueError, match="`SRC` must be a translator for the format ctranslate2"):
        convert_checkpoint(str(finished_run), tmp_path / "to", "ctranslate2", overwrite=False)
