import dataclasses
from pathlib import Path
from typing import Any

import pytest

from kbert.training.config.any_config import config_from_dict
from kbert.training.config.multi_task_config import MultiTaskConfig
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.config.stages_config import StagesConfig

A = {"train": "a.tsv"}
BOTH = {"task": "multi-task", "tasks": {"x": A, "y": A}}
STAGES = {"papers": {"task": "pretraining", "text": ["*.txt"]}, "both": BOTH, "rte": A}


def config(**values: Any) -> StagesConfig:
    return StagesConfig.from_dict({"stages": STAGES, "encoder": "e", "output": "o", **values})


def test_it_goes_to_a_dict_and_back():
    made = config(seed=3)
    assert StagesConfig.from_dict(made.to_dict()) == made
    assert config_from_dict(made.to_dict()) == made


def test_every_field_says_what_it_is_for():
    for field in dataclasses.fields(StagesConfig):
        assert field.metadata["help"].endswith("."), field.name
        assert field.metadata["panel"] in ("Stages", "Run"), field.name


def test_a_stage_is_on_the_encoder_of_the_one_before():
    found = config(seed=3, save_every=5, allow_config_change=True).stage_configs(Path("f"))
    assert [type(one) for one in found.values()][:2] == [PretrainingConfig, MultiTaskConfig]
    assert [one.encoder for one in found.values()] == ["e", "f/papers", "f/both/model/x"]
    assert [one.output for one in found.values()] == ["f/papers", "f/both", "f/rte"]
    shared = {(one.seed, one.save_every, one.allow_config_change) for one in found.values()}
    assert shared == {(3, 5, True)}


def test_stages_by_their_names():
    adapter = {**A, "adapter": "pfeiffer", "encoder": "e"}
    fused = {**A, "encoder": "e", "fuse": ["stage:a", "stage:b", "runs/c"]}
    made = config(stages={"a": adapter, "b": {**adapter, "seed": 7}, "c": fused, "d": A})
    found = made.stage_configs(Path("f"))
    assert getattr(found["c"], "fuse") == ["f/a", "f/b", "runs/c"]
    assert [one.encoder for one in found.values()] == ["e", "e", "e", "f/c"]
    assert found["b"].seed == 7
    again = config(stages={"a": A, "b": A, "c": {**A, "encoder": "stage:a"}})
    assert again.stage_configs(Path("f"))["c"].encoder == "f/a"
    # Before a stage has run there is no such folder to look at.
    assert [one.encoder for one in again.configs_to_check().values()] == ["e", "e", "e"]


def test_a_first_stage_with_an_encoder_of_its_own_or_that_makes_one():
    own = config(stages={"a": {**A, "encoder": "mine"}, "b": A}, encoder=None)
    assert [one.encoder for one in own.configs_to_check().values()] == ["mine", "mine"]
    scratch = {"a": {**A, "vocabulary": "v"}, "b": A}
    new = config(stages=scratch, encoder="scratch:tiny")
    assert [one.encoder for one in new.configs_to_check().values()] == ["scratch:tiny", "stage:a"]
    made = config(stages={"a": {**STAGES["papers"], "vocabulary": "v"}, "b": A}, encoder=None)
    assert [one.encoder for one in made.configs_to_check().values()] == [None, "stage:a"]
    assert [one.encoder for one in made.stage_configs(Path("f")).values()] == [None, "f/a"]


def test_nothing_in_a_stage_is_what_it_is_in_a_run():
    found = config(stages={"a": {**A, "clip": None}, "b": A}).stage_configs(Path("f"))
    assert [getattr(one, "clip") for one in found.values()] == [None, 1.0]


@pytest.mark.parametrize(
    "values, message",
    [
        ({"stages": None}, "`stages` must be given: two stages or more, by names"),
        ({"stages": {"a": A}}, "`stages` must be given: two stages or more"),
        ({"stages": {"a": A, "model": A}}, "letters, digits and _, not model, .*='model'"),
        ({"stages": {"a": A, "b-c": A}}, "letters, digits and _, .* Received: stages='b-c'"),
        ({"stages": {"a": A, "b": {}}}, "^stages.b: `train` must be given"),
        ({"stages": {"a": A, "b": {**A, "output": "p"}}}, "^stages.b: .* beside `stages`"),
        ({"stages": {"a": A, "b": {**A, "epoch": 1}}}, "^stages.b: the key must be .*'epoch'"),
        (
            {"stages": {"a": {**A, "encoder": "stage:b"}, "b": A}},
            "`stages.a.encoder` must be stage: and a stage before it: none. Rec.*'stage:b'",
        ),
        (
            {"stages": {"a": A, "b": {**A, "fuse": ["stage:a", "stage:c"]}}},
            "`stages.b.fuse` must be stage: and a stage before it: a. Received.*'stage:c'",
        ),
        (
            {"stages": {"a": A, "b": {**BOTH, "tasks": {"x": A}}}},
            "^stages.b: `tasks` must be given: two tasks",
        ),
        (
            {"stages": {"a": A, "b": {**A, "strategy": "multi-worker"}}, "save_every": 5},
            "^`stages.b.strategy` must be one, mirrored or tpu in a chain.*='multi-worker'",
        ),
        ({"encoder": None}, "^stages.papers: .*encoder"),
        ({"output": None}, "`output` must be given"),
    ],
)
def test_what_does_not_fit(values, message):
    with pytest.raises(ValueError, match=message):
        config(**values)
