"""What the tests of the command line share: tiny files, and one finished run."""

from pathlib import Path

import pytest

from kbert.training.run import train
from tests.training.tiny_runs import Tiny
from tests.training.tiny_translations import TinyPairs


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return Tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def finished_run(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier, trained for two epochs with seed 1. Tests must not write into it."""
    output = tmp_path_factory.mktemp("runs") / "finished"
    return train(tiny.config(output, test=tiny.texts["test"]))


@pytest.fixture(scope="session")
def tiny_pairs(tmp_path_factory: pytest.TempPathFactory) -> TinyPairs:
    return TinyPairs(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="session")
def finished_translation(tiny_pairs: TinyPairs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator, trained for two epochs with seed 1. Tests must not write into it."""
    output = tmp_path_factory.mktemp("translations") / "finished"
    return train(tiny_pairs.config(output, target_language="de", nbest=2))
