"""Runs one after the other in one folder, each on what those before it have trained.

Source of the idea that a second task first helps: Phang et al. 2018 (STILTs).
"""

import os
import shutil
from pathlib import Path
from typing import Any

from kbert.options.kinds import config_text, read_config_file
from kbert.storage.files import write_atomically
from kbert.storage.json_files import read_json_object
from kbert.training.callbacks.epoch_record import numbers
from kbert.training.config.stages_config import TASK, StageConfig, StagesConfig
from kbert.training.recipes.recipe import environment
from kbert.training.run import train
from kbert.training.runs import run_directory as runs
from kbert.training.runs.run_directory import Run, load_run
from kbert.training.runs.run_log import RunLog
from kbert.training.runs.stopped_runs import changed_keys, kept_run, resumes

# Options of a stage that name its chain's folder.
_PATHS = ("encoder", "fuse", "output")


def train_stages(config: StagesConfig) -> Path:
    """Trains the stages of a chain, and returns its run directory.

    It holds a complete run for each stage, `NAME/`, in `model/` a copy of the last one's model, and
    in `metrics.json` the final metrics of each stage; "final" is of the last. Of a chain that was
    stopped, finished stages stay, and the one that was not goes on.

    Raises:
        ValueError: a stage's configuration or data are wrong, or a stopped chain had another one.
    """
    output, resume, log = config.output or "", resumes(config), RunLog()
    runs.check_output(output, config.overwrite, resume)
    with log.listening():
        kept_run(config, log)
        opened = runs.run_directory(output, config.overwrite, resume)
        with opened as folder, log.writing(folder / runs.LOG):
            stages = config.stage_configs(folder)
            _forget_others(folder, stages, log)
            runs.write_config(config, folder)
            runs.write_json(environment(), folder / runs.ENVIRONMENT)
            done: dict[str, Run] = {}
            for name, own in stages.items():
                log.line(f"-- stage {name} ({len(done) + 1} of {len(stages)}): {own.task}")
                if not (folder / name).is_dir():  # else it was finished before a stop
                    train(own)
                done[name] = load_run(folder / name)
                log.line(f"   {_words(_summary(done[name]))}")
            _write_results(folder, done)
            for file in folder.glob(f"*/**/{runs.CONFIG}"):  # of seeds too
                _write_moved(file.parent, Path(output), folder)
            log.line(f"finished: {output}")
    return Path(output)


def _forget_others(folder: Path, stages: dict[str, StageConfig], log: RunLog) -> None:
    """Removes stages of a stopped chain that have other options now, and all that follow them."""
    is_other = False
    for name, own in stages.items():
        run = folder / name
        partial = run.with_name(f"{name}{runs.INCOMPLETE}")
        for found in (run, partial):
            if (found / runs.CONFIG).is_file():
                before = Path(read_config_file(found / runs.CONFIG)["output"]).parent
                options = _write_moved(found, folder, before)
                is_other |= bool(changed_keys(options, own, results_alone=True))
                for file in found.glob(f"*/**/{runs.CONFIG}"):  # of seeds and of a grid
                    _write_moved(file.parent, folder, before)
            if is_other and found.is_dir():
                log.line(f"{found.name} is of other options: it does not count")
                shutil.rmtree(found)


def _write_moved(run: Path, folder: Path, before: Path) -> dict[str, Any]:
    """Puts the folder of its chain into a stage's options, and returns them; see `_moved`."""
    stored = read_config_file(run / runs.CONFIG)
    options = _moved(stored, folder, before)
    if options != stored:
        write_atomically(run / runs.CONFIG, config_text(options))
    return options


def _moved(options: dict[str, Any], folder: Path, before: Path) -> dict[str, Any]:
    """Returns a stage's options with the folder that its chain has now, however it is spelled."""

    def now(value: Any) -> Any:
        if isinstance(value, list):
            return [now(one) for one in value]
        if isinstance(value, str) and Path(value).is_relative_to(before):
            return os.fspath(folder / Path(value).relative_to(before))
        return value

    return {key: now(options[key]) if key in _PATHS else options[key] for key in options}


def _write_results(folder: Path, done: dict[str, Run]) -> None:
    last = list(done.values())[-1]
    # One from before a stop may exist.
    shutil.rmtree(folder / runs.MODEL, ignore_errors=True)
    shutil.copytree(last.model_directory, folder / runs.MODEL)
    summary: dict[str, Any] = {"task": TASK}
    summary["stages"] = {name: _summary(run) for name, run in done.items()}
    summary |= {key: last.metrics[key] for key in ("monitor", "final") if key in last.metrics}
    summary["seconds"] = sum(run.metrics.get("seconds", 0.0) for run in done.values())
    runs.write_json(summary, folder / runs.METRICS)
    files = {name: run.directory / runs.REPORT for name, run in done.items()}
    reports = {name: read_json_object(file) for name, file in files.items()}
    runs.write_json({"task": TASK, "stages": reports}, folder / runs.REPORT)


def _summary(run: Run) -> dict[str, Any]:
    """Returns the task of a stage and its final metrics, single numbers; of seeds their means."""
    final = run.metrics.get("mean", run.metrics.get("final", {}))
    found = {part: numbers(one) for part, one in final.items() if isinstance(one, dict)}
    deviation = run.metrics.get("standard_deviation")
    more = {} if deviation is None else {"standard_deviation": deviation}
    return {"task": run.config.task, "final": found or numbers(final), **more}


def _words(summary: dict[str, Any]) -> str:
    """Returns the metrics of a stage on one line."""
    parts = []
    for part, metrics in summary["final"].items():
        shown = metrics if isinstance(metrics, dict) else {part: metrics}
        named = [f"{name} {value:.4f}" for name, value in shown.items()]
        parts.append(f"{part}: {', '.join(named)}" if shown is metrics else named[0])
    return "; ".join(parts)
