"""What the tests of training share: tiny files, and one finished run of each kind."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbert.training.callbacks import step_bar
from kbert.training.run import train
from tests.training.eager_steps import eager_steps
from tests.training.tiny_captions import TinyCaptions
from tests.training.tiny_runs import Tiny
from tests.training.tiny_translations import TinyPairs


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return Tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny_pairs(tmp_path_factory: pytest.TempPathFactory) -> TinyPairs:
    return TinyPairs(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="session")
def tiny_captions(tmp_path_factory: pytest.TempPathFactory) -> TinyCaptions:
    return TinyCaptions(tmp_path_factory.mktemp("captions"))


@pytest.fixture
def bar_steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the progress bar shows after each call of steps: title, steps done, steps in all."""
    seen: list[tuple[Any, ...]] = []

    class Seen(step_bar.StepBar):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            super().on_train_batch_end(batch, logs)
            (task,) = self._progress.tasks
            seen.append((task.description, task.completed, task.total))

    monkeypatch.setattr(step_bar, "StepBar", Seen)
    monkeypatch.setattr(step_bar, "draws_bar", lambda: True)
    return seen


@pytest.fixture(scope="session")
def finished_run(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier, trained for two epochs with seed 1. Tests must not write into it."""
    output = tmp_path_factory.mktemp("runs") / "finished"
    with eager_steps():
        return train(tiny.config(output, test=tiny.texts["test"]))


@pytest.fixture(scope="session")
def finished_translation(tiny_pairs: TinyPairs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator, trained for three epochs with seed 1. Tests must not write into it."""
    output = tmp_path_factory.mktemp("translations") / "finished"
    test = {"test_source": "test.en", "test_target": "test.de"}
    files = {key: str(tiny_pairs.folder / name) for key, name in test.items()}
    values = {"epochs": 3, "batch_tokens": 256, "target_language": "de"}
    with eager_steps():
        return train(tiny_pairs.config(output, **values, **files))


@pytest.fixture(scope="session")
def finished_captioning(
    tiny_captions: TinyCaptions, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A captioner, trained for two epochs with seed 1. Tests must not write into it."""
    output = tmp_path_factory.mktemp("captionings") / "finished"
    with eager_steps():
        return train(tiny_captions.config(output, batch_size=12))


@pytest.fixture
def eagerly() -> Iterator[None]:
    """Traces no step of Keras, for runs of a handful of steps."""
    with eager_steps():
        yield
