"""Runs with several seeds: mean, deviation, and the model of the best one."""

import gc
import shutil
import statistics
from pathlib import Path
from typing import Any

from kbert.training.config.any_config import AnyConfig
from kbert.training.recipes.finetuning import Finetuning
from kbert.training.recipes.recipe import EpochRecipe, run_recipe
from kbert.training.resume.resumed_run import goes_on, kept_run
from kbert.training.resume.sub_runs import begin_parts, changed_examples
from kbert.training.runs.environment import environment
from kbert.training.runs.monitor import is_better, numbers
from kbert.training.runs.run_directory import (
    ENVIRONMENT,
    LOG,
    METRICS,
    MODEL,
    REPORT,
    check_output,
    load_run,
    run_directory,
    write_json,
)
from kbert.training.runs.run_log import RunLog


def train_seeds(
    config: AnyConfig,
    data: Any = None,
    log: RunLog | None = None,
    *,
    recipe: type[EpochRecipe] = Finetuning,
) -> Path:
    """Trains with `config.seeds` seeds, from `config.seed` on.

    The run directory holds a complete run for each seed (`seed-1/`, ...), in `model/` a copy of
    the best one's model, and in `metrics.json` the metrics of each seed with mean and standard
    deviation (the sample's, with n - 1). "final" is of the best seed, which is better than the
    expectation of a single run, so report the mean.

    Args:
        config: The configuration.
        data: Its examples if they were read before.
        log: The log; by default a new one.
        recipe: The recipe of the run of one seed.

    Returns:
        The run directory.

    Raises:
        ValueError, FileNotFoundError, FileExistsError, FloatingPointError: See `run_recipe`.
    """
    output, resume = config.output or "", goes_on(config)
    log = RunLog() if log is None else log
    check_output(output, config.overwrite, resume)
    with log.listening():
        kept = kept_run(config, log)
        data = recipe.read(config) if data is None else data
        changed = changed_examples(kept, config, data)
        with run_directory(output, config.overwrite, resume) as folder, log.writing(folder / LOG):
            seeds = range(config.seed, config.seed + config.seeds)
            parts = {f"seed-{seed}": _of_seed(config, seed, folder) for seed in seeds}
            begin_parts(folder, config, data, parts, log, changed=changed)
            write_json(environment(), folder / ENVIRONMENT)
            metrics: dict[int, dict[str, Any]] = {}
            for seed, name in zip(seeds, parts):
                log.line(f"-- seed {seed} ({len(metrics) + 1} of {config.seeds})")
                run = folder / name
                if not run.is_dir():  # else it was finished before a stop
                    run_recipe(recipe(parts[name], data))
                metrics[seed] = load_run(run).metrics
                gc.collect()
            summary = summarize(metrics)
            write_json(summary, folder / METRICS)
            best = folder / f"seed-{summary['best_seed']}"
            shutil.rmtree(folder / MODEL, ignore_errors=True)  # of before a stop
            shutil.copytree(best / MODEL, folder / MODEL)
            shutil.copy2(best / REPORT, folder / REPORT)
            log.line(summary_line(summary))
    return Path(output)


def _of_seed(config: AnyConfig, seed: int, folder: Path) -> AnyConfig:
    """Returns the configuration of one of several seeds."""
    others = {"grid": False} if "grid" in config.to_dict() else {}
    place = {"output": str(folder / f"seed-{seed}"), "overwrite": False}
    return config.with_values(seed=seed, seeds=1, **place, **others)


def summarize(metrics: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Returns mean and standard deviation over seeds, and the best seed.

    Args:
        metrics: Seed -> `metrics.json` of its run.

    Returns:
        "seeds" (seed -> part -> metric -> value), "mean" and "standard_deviation" (part -> metric
        -> value; the sample's deviation, None for one seed), "best_seed", its "final" and more.
        Without validation examples the first seed counts as best.
    """
    first = next(iter(metrics.values()))
    best = next(iter(metrics))
    monitor = first["monitor"]
    if monitor is not None:
        measured = {seed: found["final"]["validation"] for seed, found in metrics.items()}
        for seed, found in measured.items():
            if seed != best and is_better(monitor, found, measured[best]):
                best = seed
    each = {
        seed: {part: numbers(values) for part, values in found["final"].items()}
        for seed, found in metrics.items()
    }
    mean: dict[str, dict[str, float]] = {}
    deviation: dict[str, dict[str, float | None]] = {}
    for part, names in each[best].items():
        columns = {name: [found[part][name] for found in each.values()] for name in names}
        mean[part] = {name: statistics.fmean(column) for name, column in columns.items()}
        deviation[part] = {
            name: statistics.stdev(column) if len(column) > 1 else None
            for name, column in columns.items()
        }
    return {
        "task": first["task"],
        "glue": first["glue"],
        "monitor": monitor,
        "seeds": {str(seed): found for seed, found in each.items()},
        "mean": mean,
        "standard_deviation": deviation,
        "best_seed": best,
        "kept_epoch": metrics[best]["kept_epoch"],
        "final": metrics[best]["final"],
        "epochs": metrics[best]["epochs"],
        "seconds": sum(found["seconds"] for found in metrics.values()),
    }


def summary_line(summary: dict[str, Any]) -> str:
    """Formats the mean and deviation of each metric.

    Args:
        summary: From `summarize`.
    """
    lines = [f"{len(summary['seeds'])} seeds, best: {summary['best_seed']}"]
    for part, means in summary["mean"].items():
        for name, mean in means.items():
            deviation = summary["standard_deviation"][part][name]
            spread = "" if deviation is None else f" +- {deviation:.4f}"
            lines.append(f"  {part} {name}: {mean:.4f}{spread}")
    return "\n".join(lines)
