"""Twenty kills at random moments, and the weights of a run that was never stopped."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.training.runs.run_directory import load_run
from tests.training.killed_run import kill_until_done
from tests.training.tiny_corpus import TinyCorpus

KILLS = 20


def check_same(one, other):
    one, other = (load_run(run) for run in (one, other))
    expected, found = (
        load_file(run.model_directory / "model.safetensors") for run in (one, other)
    )
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(array, found[name], err_msg=name)
    assert one.metrics["final"] == other.metrics["final"]


def whole(config, folder):
    """In a process of its own too: TensorFlow's switch for determinism has no way back."""
    output = folder / "whole"
    kill_until_done(config.with_values(output=str(output)).to_dict(), folder, 0)
    return output


@pytest.mark.slow
def test_a_classifier(tiny, tmp_path):
    values = {"epochs": 60, "save_every": 2, "deterministic": True, "dropout": 0.3}
    values |= {"monitor": "cross_entropy", "batch_size": 4}
    config = tiny.config(tmp_path / "killed", **values)
    resumed = kill_until_done(config.to_dict(), tmp_path, KILLS)
    check_same(whole(config, tmp_path), tmp_path / "killed")
    assert resumed > KILLS // 2


@pytest.mark.slow
def test_pretraining(tmp_path):
    tiny_corpus = TinyCorpus(tmp_path)
    values = {"steps": 300, "save_every": 3, "deterministic": True}
    config = tiny_corpus.config(tmp_path / "killed", **values)
    resumed = kill_until_done(config.to_dict(), tmp_path, KILLS)
    check_same(whole(config, tmp_path), tmp_path / "killed")
    assert resumed > KILLS // 2
