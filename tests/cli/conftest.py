"""What the tests of the command line share: tiny files, and one finished run.

Functions run as they are written, not as graphs: these tests load many tiny models and ask each
little, so that nearly all of their time would go into tracing. (Exports are graphs all the same.)
"""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbert.training.run import train
from tests.training.eager_steps import eager_functions
from tests.training.tiny_runs import Tiny
from tests.training.tiny_translations import TinyPairs


@pytest.fixture(scope="module", autouse=True)
def no_graphs() -> Iterator[None]:
    """Of all tests of this folder. Fixtures of the session are made before it."""
    with eager_functions():
        yield


@pytest.fixture(autouse=True)
def level_of_log_lines() -> Iterator[None]:
    """Tests after those of `kbert serve` see the log lines that they saw before."""
    logger = logging.getLogger("kbert")
    before = logger.level
    yield
    logger.setLevel(before)


@pytest.fixture
def graphs() -> Iterator[None]:
    """Lets the functions of one test be graphs all the same."""
    with eager_functions(False):
        yield


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return Tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def finished_run(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier, trained for two epochs with seed 1. Tests must not write into it."""
    output = tmp_path_factory.mktemp("runs") / "finished"
    with eager_functions():
        return train(tiny.config(output, test=tiny.texts["test"]))


@pytest.fixture(scope="session")
def tiny_pairs(tmp_path_factory: pytest.TempPathFactory) -> TinyPairs:
    return TinyPairs(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="session")
def finished_translation(tiny_pairs: TinyPairs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator, trained for two epochs with seed 1. Tests must not write into it."""
    output = tmp_path_factory.mktemp("translations") / "finished"
    with eager_functions():
        return train(tiny_pairs.config(output, target_language="de", nbest=2))
