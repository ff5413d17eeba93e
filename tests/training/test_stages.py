"""Whole chains of runs: what they hold, and that a stop changes nothing."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.options.kinds import read_config_file
from kbert.training import stages as stages_module
from kbert.training.config.stages_config import StagesConfig
from kbert.training.run import look_first, train
from kbert.training.runs.run_directory import load_run, write_config
from kbert.training.runs.run_log import RunLog
from tests.training.eager_steps import eager_steps
from tests.training.tiny_runs import Tiny


def config(tiny: Tiny, output: Path, **others: Any) -> StagesConfig:
    texts = {"train": tiny.texts["train"], "validation": tiny.texts["validation"]}
    run = {"epochs": 1, "batch_size": 8, "learning_rate": 0.01, "max_sequence_length": 16}
    chain: dict[str, Any] = {
        "score": {"task": "regression", "train": tiny.pairs, **run},
        "mood": {**texts, **run},
    }
    values = {"stages": chain, "encoder": str(tiny.encoder), "output": str(output)}
    return StagesConfig.from_dict({**values, **others})


@pytest.fixture(scope="module")
def finished(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of two stages. Tests must not write into it."""
    with eager_steps():
        return train(config(tiny, tmp_path_factory.mktemp("chain") / "run"))


def test_what_a_chain_holds(finished: Path, tiny: Tiny):
    assert sorted(os.listdir(finished)) == [
        *("config.yaml", "environment.json", "log.txt", "metrics.json", "model", "mood"),
        *("report.json", "score"),
    ]
    chain = load_run(finished)
    assert chain.config == config(tiny, finished)
    last = load_run(finished / "mood")
    assert chain.metrics["final"] == last.metrics["final"]
    accuracy = last.metrics["final"]["validation"]["accuracy"]
    assert chain.metrics["stages"]["mood"]["final"]["validation"]["accuracy"] == accuracy
    assert chain.metrics["stages"]["score"] == {"task": "regression", "final": {}}
    report = json.loads((finished / "report.json").read_text())["stages"]
    assert report["mood"]["examples"]["train"]["count"] == 24 and report["score"]["steps"] == 2
    text = (finished / "log.txt").read_text()
    assert "-- stage score (1 of 2): regression" in text
    assert f"validation: accuracy {accuracy:.4f}" in text
    models = (run / "model" / "model.safetensors" for run in (finished, last.directory))
    one, other = map(load_file, models)
    assert all((one[name] == other[name]).all() for name in one)


def test_a_stage_begins_with_the_encoder_of_the_one_before(finished: Path):
    second = load_run(finished / "mood").config
    assert (second.encoder, second.output) == (f"{finished}/score", f"{finished}/mood")
    first, second = (
        load_file(finished / name / "model" / "model.safetensors") for name in ("score", "mood")
    )
    for name in (name for name in first if "encoder_block" in name and name.endswith("kernel")):
        # Three steps of a rate of at most 0.01, from weights of a deviation of 0.5.
        assert 0 < np.abs(first[name] - second[name]).max() < 0.04


def stopped_in_the_second_stage(
    asked: StagesConfig, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Trains a chain until its second stage; the list gets the name of each stage that begins."""
    trained: list[str] = []

    def stopped(own: Any) -> Path:
        trained.append(Path(own.output).name)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return train(own)

    monkeypatch.setattr(stages_module, "train", stopped)
    with pytest.raises(KeyboardInterrupt):
        train(asked)
    return trained


def test_a_stopped_chain_goes_on_where_its_folder_is_spelled_otherwise(
    finished: Path, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eagerly: None
):
    monkeypatch.chdir(tmp_path)
    trained = stopped_in_the_second_stage(config(tiny, Path("run")), monkeypatch)
    assert sorted(os.listdir(tmp_path)) == ["run.incomplete"]
    again = train(config(tiny, tmp_path / "run"))
    assert trained == ["score", "mood", "mood"]
    one, other = (load_file(run / "model" / "model.safetensors") for run in (finished, again))
    assert all((one[name] == other[name]).all() for name in one)
    stored = read_config_file(tmp_path / "run" / "mood" / "config.yaml")
    assert stored["encoder"] == str(tmp_path / "run" / "score")


def test_the_seeds_of_a_stopped_stage_have_the_folder_of_the_chain(tmp_path: Path, tiny: Tiny):
    """However it is spelled: seeds that were finished would not count otherwise."""
    asked = config(tiny, tmp_path / "run")
    before, now = Path("run.incomplete"), tmp_path / "run.incomplete"
    own = asked.stage_configs(before)["mood"]
    stage = now / "mood.incomplete"
    for folder, output in ((stage, before / "mood"), (stage / "seed-1", before / "mood" / "x")):
        folder.mkdir(parents=True)
        write_config(own.with_values(output=str(output)), folder)
    wanted = asked.stage_configs(now)
    stages_module._forget_others(now, {"mood": wanted["mood"]}, RunLog())
    assert read_config_file(stage / "seed-1" / "config.yaml")["encoder"] == wanted["mood"].encoder


def test_a_stopped_stage_stays_with_other_states_and_curves(tmp_path: Path, tiny: Tiny):
    asked = config(tiny, tmp_path / "run").with_values(save_every=9, tensorboard=True)
    before = config(tiny, tmp_path / "run").stage_configs(tmp_path)
    for name, folder in (("score", "score"), ("mood", "mood.incomplete")):
        (tmp_path / folder).mkdir()
        write_config(before[name], tmp_path / folder)
    stages_module._forget_others(tmp_path, asked.stage_configs(tmp_path), RunLog())
    assert sorted(os.listdir(tmp_path)) == ["mood.incomplete", "score"]
    other = asked.with_values(seed=7).stage_configs(tmp_path)
    stages_module._forget_others(tmp_path, {"mood": other["mood"]}, RunLog())
    assert os.listdir(tmp_path) == ["score"]


@pytest.mark.slow
def test_a_chain_with_other_options_begins_where_they_count(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eagerly: None
):
    asked = config(tiny, tmp_path / "run")
    trained = stopped_in_the_second_stage(asked, monkeypatch)
    assert asked.stages is not None
    other = {**asked.stages, "score": {**asked.stages["score"], "batch_size": 4}}
    changed = config(tiny, tmp_path / "run", stages=other)
    with pytest.raises(ValueError, match="`resume` must go on with the same configuration"):
        train(changed)
    train(changed.with_values(allow_config_change=True))
    assert trained == ["score", "mood", "score", "mood"]


def test_what_does_not_fit(tiny: Tiny, tmp_path: Path):
    made = config(tiny, tmp_path / "run")
    assert made.stages is not None
    wrong = {**made.stages, "mood": {**made.stages["mood"], "train": "nowhere.tsv"}}
    with pytest.raises(FileNotFoundError, match="^stages.mood: `--train` must be a file"):
        look_first(config(tiny, tmp_path / "run", stages=wrong))
    with pytest.raises(FileNotFoundError, match="^stages.score: .*nothing-known"):
        look_first(config(tiny, tmp_path / "run", encoder="nothing-known"))
