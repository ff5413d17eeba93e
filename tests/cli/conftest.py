"""What the tests of the command line share: tiny files, and one finished run."""

from pathlib import Path

import pytest

from kbert.training.run import train
from tests.training.tiny_runs import Tiny


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return Tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def finished_run(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier, trained for two epochs with seed 1. Tests must not write into it."""
    output = tmp_path_factory.mktemp("runs") / "finished"
    return train(tiny.config(output, test=tiny.texts["test"]))
