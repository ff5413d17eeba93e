"""Captioners as folders, and read again."""

import json
from pathlib import Path

import numpy as np
import pytest

from kbert.models.bert import Bert
from kbert.models.weights import encoder_arrays
from kbert.tasks.captioning.model import Captioner
from kbert.tasks.load import load
from tests.small_captioner import shapes, small_captioner

IMAGES = shapes()[0][:3]
SETTINGS = {
    **{"beam_size": 3, "nbest": 2, "alpha": 0.7, "length_penalty": "gnmt", "max_length": 5},
    **{"image_fit": "crop", "train_extractor": True, "label_smoothing": 0.1},
    "attention_penalty": 0.4,
    "feature_dropout": 0.3,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A captioner of soft attention. Tests must not write into it."""
    model = small_captioner(**SETTINGS)
    return model.save_pretrained(tmp_path_factory.mktemp("saved") / "model")


@pytest.mark.parametrize("kind", ["soft", "hard", "mean", "image"])
def test_what_is_read_again_is_the_same(kind: str, tmp_path: Path):
    model = small_captioner(kind, **SETTINGS)
    model.extractor.preprocessing = "torch"
    saved = model.save_pretrained(tmp_path / "model")
    assert saved == tmp_path / "model"
    again = load(saved)
    assert type(again) is Captioner and type(again.decoder) is type(model.decoder)
    assert {name: getattr(again, name) for name in SETTINGS} == SETTINGS
    assert set(SETTINGS) == set(Captioner.arguments)
    assert again.decoder.get_config() == model.decoder.get_config()
    assert again.extractor.preprocessing == "torch" and again.subwords == model.subwords
    for part in ("decoder", "extractor"):
        before, after = (encoder_arrays(getattr(one, part)) for one in (model, again))
        assert sorted(before) == sorted(after) and before
        for name, array in before.items():
            np.testing.assert_array_equal(array, after[name], err_msg=name)
    known, found = (one.extractor(IMAGES) for one in (model, again))
    np.testing.assert_array_equal(known, found)
    searched = [one.search(known) for one in (model, again)]
    np.testing.assert_array_equal(searched[0].token_ids, searched[1].token_ids)
    np.testing.assert_array_equal(searched[0].scores, searched[1].scores)


def test_settings_and_type_may_be_others(folder: Path):
    again = Captioner.from_pretrained(folder, beam_size=1, nbest=1, dtype="mixed_bfloat16")
    assert again.beam_size == 1 and again.alpha == 0.7
    assert again.decoder.compute_dtype == "bfloat16"
    assert again.extractor.compute_dtype == "float32"
    assert np.isfinite(again.search(again.extractor(IMAGES)).scores).all()


def test_another_folder_or_format(folder: Path, tmp_path: Path):
    model = small_captioner()
    with pytest.raises(ValueError, match='`format` must be "kbert" for a captioner. .*huggingface'):
        model.save_pretrained(tmp_path / "model", format="huggingface")
    model.save_pretrained(tmp_path / "model")
    with pytest.raises(FileExistsError):
        model.save_pretrained(tmp_path / "model")
    model.alpha = 0.25
    model.save_pretrained(tmp_path / "model", overwrite=True)
    assert load(tmp_path / "model").alpha == 0.25
    with pytest.raises(FileNotFoundError, match="with kbert_captioning.json"):
        Captioner.from_pretrained(tmp_path)
    with pytest.raises(ValueError, match="`path` must (be a checkpoint|hold a BERT encoder)"):
        Bert.from_pretrained(folder)


def test_damaged_folders_are_refused(tmp_path: Path):
    folder = small_captioner().save_pretrained(tmp_path / "model")
    file = folder / "kbert_captioning.json"
    about = json.loads(file.read_text())
    for name in about["sha256"]:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-4] + b"\1\2\3\4")
        with pytest.raises(ValueError, match=f"{name}` must have the SHA-256"):
            load(folder)
        (folder / name).write_bytes(content)
    load(folder)
    decoder = {**about["decoder"], "hidden_dim": 9}
    file.write_text(json.dumps({**about, "decoder": decoder}))
    with pytest.raises(ValueError, match=r"expected .*, found"):
        load(folder)
    file.write_text(json.dumps({**about, "format_version": 2}))
    with pytest.raises(ValueError, match="`format_version` must be 1"):
        load(folder)


@pytest.mark.parametrize("part", ["decoder", "extractor", "settings"])
def test_an_unknown_key_is_a_value_error(part: str, tmp_path: Path):
    """As the documentation of `from_pretrained` has it, not a TypeError of Python."""
    folder = small_captioner().save_pretrained(tmp_path / "model")
    file = folder / "kbert_captioning.json"
    about = json.loads(file.read_text())
    about[part]["no_such_key"] = 3
    file.write_text(json.dumps(about))
    with pytest.raises((ValueError, TypeError), match="no_such_key"):
        load(folder)
