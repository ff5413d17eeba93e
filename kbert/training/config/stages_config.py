"""`StagesConfig`: a chain of runs, each on the encoder that another one has trained."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbert.options.configuration import MULTI_WORKER, RunOptions, wrong
from kbert.options.kinds import choice, entries, option, text
from kbert.training.config import multi_task_config, pretraining_config
from kbert.training.config.finetuning_config import SCRATCH, RunConfig
from kbert.training.config.multi_task_config import MultiTaskConfig
from kbert.training.config.pretraining_config import PretrainingConfig

TASK = "stages"
STAGE = "stage:"  # before the name of a stage, in the place of an encoder or a run
_KINDS: dict[Any, type[RunConfig | MultiTaskConfig | PretrainingConfig]] = {
    multi_task_config.TASK: MultiTaskConfig,
    pretraining_config.TASK: PretrainingConfig,
}
# Options of the chain, which its stages have from it.
_SHARED = (
    *("seed", "deterministic", "save_every", "keep_states", "tensorboard"),
    "allow_config_change",
)
_OF_CHAIN = ("output", "overwrite", "resume", "allow_config_change", "keep_states", "save_every")
_NAMES_OF_FILES = ("model", "checkpoints", "states")
StageConfig = RunConfig | MultiTaskConfig | PretrainingConfig


@dataclass(frozen=True)
class StagesConfig(RunOptions):
    """The configuration of several runs, one after the other, in one folder.

    An entry of `stages` has the options of a run of its `task`: of any that fine-tunes an encoder,
    "multi-task" or "pretraining". Its encoder is by default that of the stage before it; where a
    run or an encoder is named, `stage:NAME` is a stage before. See `docs/transfer.md`.
    """

    needed = ("stages", "output")

    task: str = option(TASK, choice(TASK), "Stages", "What is learned.")
    stages: dict[str, Any] | None = option(
        None, entries("stages"), "Stages",
        "Names of the stages in their order, each with a YAML file of the options of its run: "
        "nli=nli.yaml,rte=rte.yaml; in a file of --config with these options themselves.",
    )
    encoder: str | None = option(
        None, text("a name or a folder"), "Stages", "The encoder of the first stage."
    )

    def check_together(self) -> None:
        """Checks the values against each other, and the options of each stage."""
        super().check_together()
        if len(self.stages or {}) < 2:
            raise wrong("stages", "given: two stages or more, by names", self.stages)
        for name in self.stages or {}:
            if not str(name).isidentifier() or name in _NAMES_OF_FILES:
                others = ", ".join(_NAMES_OF_FILES)
                raise wrong("stages", f"by names of letters, digits and _, not {others}", name)
        for name, own in self.configs_to_check().items():
            if own.strategy == MULTI_WORKER:  # each worker would write the chain's folder
                expected = "one, mirrored or tpu in a chain, whose folder one process writes"
                raise wrong(f"stages.{name}.strategy", expected, own.strategy)

    def configs_to_check(self) -> dict[str, StageConfig]:
        """Returns the configurations of the stages, as far as they can be checked.

        What the stages before a stage will have made is not there yet: the encoder of a stage is
        that which the one before began with, or `stage:NAME` where that one makes its own, as of
        random weights.
        """
        found: dict[str, StageConfig] = {}

        def encoder_of(name: str) -> str:
            began = found[name].encoder or SCRATCH
            return STAGE + name if began.startswith(SCRATCH) else began

        return self._configs(Path(self.output or ""), encoder_of, found)

    def stage_configs(self, folder: Path) -> dict[str, StageConfig]:
        """Returns the configurations of the stages, whose runs are in a folder."""

        def encoder_of(name: str) -> str:
            options = (self.stages or {})[name]
            if options.get("task") != multi_task_config.TASK:
                return os.fspath(folder / name)
            return os.fspath(folder / name / "model" / next(iter(options["tasks"])))

        return self._configs(folder, encoder_of, {})

    def _configs(
        self, folder: Path, encoder_of: Callable[[str], str], found: dict[str, StageConfig]
    ) -> dict[str, StageConfig]:
        for name, options in (self.stages or {}).items():
            source, before = f"stages.{name}", list(found)
            for key in options:
                if key in _OF_CHAIN:
                    raise ValueError(
                        f"{source}: the key must not be one of those beside `stages`. "
                        f"Received: {key!r}"
                    )
            shared = {key: getattr(self, key) for key in _SHARED}
            values = {key: value for key, value in shared.items() if value is not None} | options
            values["output"] = os.fspath(folder / name)
            values.setdefault("encoder", STAGE + before[-1] if before else self.encoder)
            for key in ("encoder", "fuse"):
                value = _resolved(source, key, values.pop(key, None), before, folder, encoder_of)
                if value is not None:  # not all kinds of runs have both keys
                    values[key] = value
            found[name] = _config_of(source, values)
        return found


def _resolved(
    source: str,
    key: str,
    value: Any,
    before: list[str],
    folder: Path,
    encoder_of: Callable[[str], str],
) -> Any:
    """Returns an encoder, or the runs of a fusion, with folders in the place of stages' names."""
    for one in value if isinstance(value, list) else [value]:
        name = str(one).removeprefix(STAGE)
        if str(one).startswith(STAGE) and name not in before:
            known = ", ".join(before) or "none"
            raise wrong(f"{source}.{key}", f"{STAGE} and a stage before it: {known}", one)
    if isinstance(value, list):
        names = [str(one).removeprefix(STAGE) for one in value]
        return [
            os.fspath(folder / name) if str(one).startswith(STAGE) else one
            for one, name in zip(value, names)
        ]
    is_stage = isinstance(value, str) and value.startswith(STAGE)
    return encoder_of(value.removeprefix(STAGE)) if is_stage else value


def _config_of(source: str, values: dict[str, Any]) -> StageConfig:
    try:
        return _KINDS.get(values.get("task"), RunConfig).from_dict(values, source)
    except ValueError as error:
        named = "" if str(error).startswith(source) else f"{source}: "
        raise ValueError(f"{named}{error}") from error
