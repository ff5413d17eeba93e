import os

import pytest

from kbert.text.subword import Subword
from kbert.training.runs.run_directory import write_config
from kbert.training.translation.examples import read_translation_data, run_subwords, write_subwords


def learned(tiny_pairs, tmp_path, kept=None, **values):
    config = tiny_pairs.config(tmp_path / "run", **values)
    return run_subwords(config, read_translation_data(config), kept)


def test_joint_ones_are_one_and_know_both_languages(tiny_pairs, tmp_path):
    source, target = learned(tiny_pairs, tmp_path)
    assert source is target and len(source) == 46
    for text in ("red dog", "gross katze"):
        ids = source.tokenize([text]).to_list()[0]
        assert source.unknown_id not in ids
    write_subwords((source, target), tmp_path)
    assert os.listdir(tmp_path / "subwords") == ["joint.model"]


def test_separate_ones_know_their_language_alone(tiny_pairs, tmp_path):
    values = {"subwords": "separate", "vocabulary_size": 20, "subword_type": "unigram"}
    source, target = learned(tiny_pairs, tmp_path, **values)
    assert len(source) == len(target) == 20
    assert source.unknown_id in source.tokenize(["katze"]).to_list()[0]  # no English word has a k
    assert target.unknown_id not in target.tokenize(["katze"]).to_list()[0]
    write_subwords((source, target), tmp_path)
    again = learned(tiny_pairs, tmp_path, kept=tmp_path, **values)
    assert [one.model for one in again] == [source.model, target.model]


def test_ready_ones_are_read(tiny_pairs, tmp_path):
    joint, _ = learned(tiny_pairs, tmp_path)
    joint.save(tmp_path / "a.model")
    ready = {"vocabulary_size": 8000, "source_subwords": str(tmp_path / "a.model")}
    source, target = learned(tiny_pairs, tmp_path, **ready)
    assert source is target and source.model == joint.model
    both = {**ready, "target_subwords": str(tmp_path / "a.model")}
    source, target = learned(tiny_pairs, tmp_path, **both)
    assert source is target  # one model, whatever its file is called
    (tmp_path / "b.model").write_bytes(b"no model")
    with pytest.raises(ValueError, match="b.model: .*SentencePiece"):
        learned(tiny_pairs, tmp_path, **{**ready, "source_subwords": str(tmp_path / "b.model")})
    with pytest.raises(FileNotFoundError, match="must be a SentencePiece model"):
        learned(tiny_pairs, tmp_path, **{**ready, "source_subwords": str(tmp_path / "none")})


def test_they_are_there_whole_or_not_at_all(tiny_pairs, tmp_path, monkeypatch):
    values = {"subwords": "separate", "vocabulary_size": 20, "subword_type": "unigram"}
    subwords = learned(tiny_pairs, tmp_path, **values)

    def full(*_):
        raise OSError("no space")

    monkeypatch.setattr(subwords[1], "save", full, raising=False)
    with pytest.raises(OSError, match="no space"):
        write_subwords(subwords, tmp_path)
    assert not (tmp_path / "subwords").exists()
    monkeypatch.undo()
    write_subwords(subwords, tmp_path)
    write_subwords(subwords, tmp_path)  # a run that goes on begins like any other
    assert sorted(os.listdir(tmp_path / "subwords")) == ["source.model", "target.model"]


def test_a_stopped_run_does_not_get_other_pieces(tiny_pairs, tmp_path):
    config = tiny_pairs.config(tmp_path / "run")
    write_subwords(learned(tiny_pairs, tmp_path), tmp_path)
    write_config(config, tmp_path)
    assert len(learned(tiny_pairs, tmp_path, kept=tmp_path)[0]) == 46
    changes = {"vocabulary_size": 40, "epochs": 3, "allow_config_change": True}
    with pytest.raises(ValueError, match="^`vocabulary_size` must be as the run began with, even"):
        learned(tiny_pairs, tmp_path, kept=tmp_path, **changes)


def test_those_of_a_stopped_run_are_used_and_not_learned_anew(tiny_pairs, tmp_path):
    joint, _ = learned(tiny_pairs, tmp_path, vocabulary_size=40)
    assert learned(tiny_pairs, tmp_path, kept=tmp_path)[0].model != joint.model  # nothing is there
    write_subwords((joint, joint), tmp_path)
    source, target = learned(tiny_pairs, tmp_path, kept=tmp_path)
    assert source is target and source.model == joint.model
    assert isinstance(source, Subword)
