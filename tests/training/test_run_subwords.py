import os

import pytest

from kbert.text.subword import Subword
from kbert.training.run_subwords import run_subwords, write_subwords
from kbert.training.translation_data import read_translation_data


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
    assert source is not target
    (tmp_path / "b.model").write_bytes(b"no model")
    with pytest.raises(ValueError, match="b.model: .*SentencePiece"):
        learned(tiny_pairs, tmp_path, **{**ready, "source_subwords": str(tmp_path / "b.model")})
    with pytest.raises(FileNotFoundError, match="must be a SentencePiece model"):
        learned(tiny_pairs, tmp_path, **{**ready, "source_subwords": str(tmp_path / "none")})


def test_those_of_a_stopped_run_are_used_and_not_learned_anew(tiny_pairs, tmp_path):
    joint, _ = learned(tiny_pairs, tmp_path, vocabulary_size=40)
    assert learned(tiny_pairs, tmp_path, kept=tmp_path)[0].model != joint.model  # nothing is there
    write_subwords((joint, joint), tmp_path)
    source, target = learned(tiny_pairs, tmp_path, kept=tmp_path)
    assert source is target and source.model == joint.model
    assert isinstance(source, Subword)
