"""Runs with several seeds: mean, deviation, and the model of the best one.

With it: the folder of several runs, which a grid has too.
"""

import gc
import shutil
import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kbert.options.kinds import read_config_file
from kbert.training.callbacks.epoch_record import is_better, numbers
from kbert.training.config.any_config import AnyConfig
from kbert.training.recipes.finetuning import Finetuning
from kbert.training.recipes.recipe import EpochRecipe, environment, run_recipe
from kbert.training.resume.resumed_run import changed_data, changed_keys, goes_on, kept_run
from kbert.training.runs.run_directory import (
    CONFIG,
    ENVIRONMENT,
    INCOMPLETE,
    LOG,
    METRICS,
    MODEL,
    REPORT,
    check_output,
    load_run,
    run_directory,
    write_config,
    write_json,
)
from kbert.training.runs.run_log import RunLog


def train_seeds(
    config: AnyConfig, data: Any = None, *, recipe: type[EpochRecipe] = Finetuning
) -> Path:
    """Trains with `config.seeds` seeds, from `config.seed` on.

    The run directory holds a complete run for each seed (`seed-1/`, ...), in `model/` a copy of
    the best one's model, and in `metrics.json` the metrics of each seed with mean and standard
    deviation (the sample's, with n - 1). "final" is of the best seed, which is better than the
    expectation of a single run, so report the mean.
    """
    seeds, log = range(config.seed, config.seed + config.seeds), RunLog()
    parts = {f"seed-{seed}": _of_seed(config, seed) for seed in seeds}
    with folder_of_parts(config, parts, recipe.read, data, log) as (folder, data):
        metrics: dict[int, dict[str, Any]] = {}
        for seed, (name, own) in zip(seeds, parts.items()):
            log.line(f"-- seed {seed} ({len(metrics) + 1} of {config.seeds})")
            run = folder / name
            if not run.is_dir():  # else it was finished before a stop
                run_recipe(recipe(own.with_values(output=str(run)), data))
            metrics[seed] = load_run(run).metrics
            gc.collect()
        summary = summarize(metrics)
        write_json(summary, folder / METRICS)
        best = folder / f"seed-{summary['best_seed']}"
        shutil.rmtree(folder / MODEL, ignore_errors=True)  # of before a stop
        shutil.copytree(best / MODEL, folder / MODEL)
        shutil.copy2(best / REPORT, folder / REPORT)
        log.line(summary_line(summary))
    return Path(config.output or "")


def _of_seed(config: AnyConfig, seed: int) -> AnyConfig:
    """Returns the configuration of one of several seeds."""
    others = {"grid": False} if "grid" in config.to_dict() else {}
    return config.with_values(seed=seed, seeds=1, overwrite=False, **others)


def summarize(metrics: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Returns mean and standard deviation over seeds, and the best seed.

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
    """Formats the mean and deviation of each metric."""
    lines = [f"{len(summary['seeds'])} seeds, best: {summary['best_seed']}"]
    for part, means in summary["mean"].items():
        for name, mean in means.items():
            deviation = summary["standard_deviation"][part][name]
            spread = "" if deviation is None else f" +- {deviation:.4f}"
            lines.append(f"  {part} {name}: {mean:.4f}{spread}")
    return "\n".join(lines)


@contextmanager
def folder_of_parts(
    config: AnyConfig,
    parts: Mapping[str, AnyConfig],
    read: Callable[..., Any],
    data: Any,
    log: RunLog,
    together: bool = False,
) -> Iterator[tuple[Path, Any]]:
    """Opens the run directory of several runs on the same examples, each with a folder in it.

    Args:
        parts: That of each, by the name of its folder.
        together: Whether all parts are trained again if one is: the models of some are gone.

    Yields:
        The folder to write into, and the examples.
    """
    output, resume = config.output or "", goes_on(config)
    check_output(output, config.overwrite, resume)
    with log.listening():
        kept = kept_run(config, log)
        data = read(config) if data is None else data
        changed = changed_examples(kept, config, data)
        with run_directory(output, config.overwrite, resume) as folder, log.writing(folder / LOG):
            begin_parts(folder, config, data, parts, log, changed=changed, together=together)
            write_json(environment(), folder / ENVIRONMENT)
            yield folder, data


def changed_examples(kept: Path | None, config: AnyConfig, data: Any) -> bool:
    """Returns whether a stopped run had other examples, where the configuration allows that.

    Raises:
        ValueError: It had others and may not, or its report is damaged.
    """
    return kept is not None and bool(changed_data(kept, data.hashes, config.allow_config_change))


def begin_parts(
    folder: Path,
    config: AnyConfig,
    data: Any,
    parts: Mapping[str, AnyConfig],
    log: RunLog,
    *,
    changed: bool,
    together: bool = False,
) -> None:
    """Keeps the parts that an earlier process did, except those of another configuration or data.

    Their results are compared with each other: each must be of its own configuration in `parts`,
    and of the same examples. If one has to go and they belong `together`, all go.
    """
    kind = next(iter(parts)).rpartition("-")[0]
    found = [path for path in folder.glob(f"{kind}-*") if path.is_dir()]
    others = [path for path in found if changed or _is_other(path, parts)]
    if others and together:
        others = found
        shutil.rmtree(folder / MODEL, ignore_errors=True)
    for path in others:
        log.line(f"{path.name} is of other options or data: it does not count")
        shutil.rmtree(path)
    # Last: if a stop comes before, the next process does the same.
    write_config(config, folder)
    write_json(data.hashes, folder / REPORT)


def _is_other(path: Path, parts: Mapping[str, AnyConfig]) -> bool:
    wanted = parts.get(path.name.removesuffix(INCOMPLETE))
    if wanted is None:
        return True
    if not (path / CONFIG).is_file():
        return False  # it was stopped before it wrote anything
    return bool(changed_keys(read_config_file(path / CONFIG), wanted))
