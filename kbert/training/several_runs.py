"""Runs with several seeds and over a grid, in one folder; the best one's model is kept.

Source of the default grid over batch sizes, learning rates and epochs: Devlin et al. 2019, appendix
A.3 (batch 16, 32; Adam's rate 5e-5, 3e-5, 2e-5; without its 2 epochs).
"""

import gc
import itertools
import os
import shutil
import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kbert.options.kinds import read_config_file
from kbert.training.callbacks.epoch_record import is_better, numbers
from kbert.training.config.any_config import AnyConfig
from kbert.training.config.finetuning_config import GRID_KEYS, RunConfig
from kbert.training.recipes.finetuning import Finetuning, train_once
from kbert.training.recipes.recipe import EpochRecipe, environment, run_recipe
from kbert.training.runs import run_directory as runs
from kbert.training.runs.run_log import RunLog
from kbert.training.runs.stopped_runs import changed_data, changed_keys, kept_run, resumes

GRID = {"batch_size": [16, 32], "learning_rate": [5e-5, 3e-5, 2e-5], "epochs": [3, 4]}


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
    others = {"grid": False} if "grid" in config.to_dict() else {}
    parts = {
        f"seed-{seed}": config.with_values(seed=seed, seeds=1, overwrite=False, **others)
        for seed in seeds
    }
    with folder_of_parts(config, parts, recipe.read, data, log) as (folder, data):
        metrics: dict[int, dict[str, Any]] = {}
        for seed, (name, own) in zip(seeds, parts.items()):
            log.line(f"-- seed {seed} ({len(metrics) + 1} of {config.seeds})")
            run = folder / name
            if not run.is_dir():  # else it was finished before a stop
                run_recipe(recipe(own.with_values(output=str(run)), data))
            metrics[seed] = runs.load_run(run).metrics
            gc.collect()
        summary = summarize(metrics)
        runs.write_json(summary, folder / runs.METRICS)
        best = folder / f"seed-{summary['best_seed']}"
        shutil.rmtree(folder / runs.MODEL, ignore_errors=True)  # of before a stop
        shutil.copytree(best / runs.MODEL, folder / runs.MODEL)
        shutil.copy2(best / runs.REPORT, folder / runs.REPORT)
        log.line(summary_line(summary))
    return Path(config.output or "")


def summarize(metrics: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Returns mean and standard deviation over seeds, and the best seed.

    "mean" and "standard_deviation" map part -> metric -> value; the deviation is the sample's, None
    for one seed. Without validation examples the first seed counts as best.
    """
    first = next(iter(metrics.values()))
    best = next(iter(metrics))
    monitor = first["monitor"]
    for seed, found in metrics.items() if monitor is not None else ():
        before = metrics[best]["final"]["validation"]
        if seed != best and is_better(monitor, found["final"]["validation"], before):
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
        **{key: metrics[best][key] for key in ("kept_epoch", "final", "epochs")},
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

    `parts` are the runs by the names of their folders. If they belong `together`, all are trained
    again if a finished one is: the models of some are gone. Yields the folder to write into, and
    the examples.
    """
    output, resume = config.output or "", resumes(config)
    runs.check_output(output, config.overwrite, resume)
    with log.listening():
        kept = kept_run(config, log)
        data = read(config) if data is None else data
        changed = changed_examples(kept, config, data)
        opened = runs.run_directory(output, config.overwrite, resume)
        with opened as folder, log.writing(folder / runs.LOG):
            begin_parts(folder, config, data, parts, log, changed=changed, together=together)
            runs.write_json(environment(), folder / runs.ENVIRONMENT)
            yield folder, data


def changed_examples(kept: Path | None, config: AnyConfig, data: Any) -> bool:
    """Returns whether a stopped run had other examples; a ValueError where it may not have them."""
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
    and of the same examples. If a finished one has to go and they belong `together`, all go; an
    unfinished one goes alone, as no model was given up for it.
    """
    kind = next(iter(parts)).rpartition("-")[0]
    found = [path for path in folder.glob(f"{kind}-*") if path.is_dir()]
    others = [path for path in found if changed or _is_other(path, parts)]
    if together and any(not path.name.endswith(runs.INCOMPLETE) for path in others):
        others = found
        shutil.rmtree(folder / runs.MODEL, ignore_errors=True)
    for path in others:
        log.line(f"{path.name} is of other options or data: it does not count")
        shutil.rmtree(path)
    # Last: if a stop comes before, the next process does the same.
    runs.write_config(config, folder)
    runs.write_json(data.hashes, folder / runs.REPORT)


def _is_other(path: Path, parts: Mapping[str, AnyConfig]) -> bool:
    wanted = parts.get(path.name.removesuffix(runs.INCOMPLETE))
    if wanted is None:
        return True
    if not (path / runs.CONFIG).is_file():
        return False  # it was stopped before it wrote anything
    # One that is not finished goes on with other states and curves, too.
    return bool(changed_keys(read_config_file(path / runs.CONFIG), wanted, results_alone=True))


def grid_points(config: RunConfig) -> list[dict[str, Any]]:
    """Returns the points of a configuration's grid: the published one, or its lists of values.

    Raises:
        ValueError: A value of the grid is invalid; the message names key and value.
    """
    chosen: dict[str, Any] = config.grid if isinstance(config.grid, dict) else GRID
    keys = [key for key in GRID_KEYS if key in chosen]
    points = [dict(zip(keys, values)) for values in itertools.product(*(chosen[k] for k in keys))]
    for point in points:
        config.with_values(**point, grid=False)
    return points


def train_grid(config: Any) -> Path:
    """Trains each point of a grid, with `config.seeds` seeds each.

    The run directory holds a folder for each point, `metrics.json` with the table of all points and
    the metrics of the best one, whose model is in `model/`; the other points keep no model.
    """
    points, log = grid_points(config), RunLog()
    parts = {
        f"grid-{number}": config.with_values(**point, grid=False, overwrite=False)
        for number, point in enumerate(points, start=1)
    }
    opened = folder_of_parts(config, parts, Finetuning.read, None, log, together=True)
    with opened as (folder, data):
        rows: list[dict[str, Any]] = []
        best: dict[str, Any] | None = None
        for point, (name, own) in zip(points, parts.items()):
            log.line(f"-- grid {len(rows) + 1} of {len(points)}: {_words(point)}")
            run = folder / name
            if not run.is_dir():  # else it was finished before a stop
                one: Any = own.with_values(output=str(run))
                train_seeds(one, data) if one.seeds > 1 else train_once(one, data)
            row = {"folder": run.name, **point, **_summary(run, config)}
            rows.append(row)
            log.line(_row(row))
            # By the means over the seeds.
            before = None if best is None else best["mean"]["validation"]
            if is_better(row["monitor"], row["mean"]["validation"], before):
                best = row
            # The previous best may no longer be the best.
            for other in rows:
                _drop_models(folder / other["folder"], other is best)
        if best is not None:
            _write_best(folder, best, rows)
            told = f"best:{_row(best).removeprefix(' ')}  ({best['folder']})"
            log.line("\n".join(["the grid:", *map(_row, rows), told]))
    return Path(config.output or "")


def _summary(run: Path, config: RunConfig) -> dict[str, Any]:
    """Returns the monitored metric of a point: mean and deviation over its seeds."""
    metrics = runs.load_run(run).metrics
    summary = metrics if config.seeds > 1 else summarize({config.seed: metrics})
    monitor = summary["monitor"]
    kept = {key: summary[key] for key in ("mean", "standard_deviation")}
    return {"monitor": monitor, "value": summary["mean"]["validation"][monitor], **kept}


def _drop_models(run: Path, is_best: bool) -> None:
    """Removes large weights: only those of the best point are kept."""
    for folder in (*run.glob("seed-*"), *(() if is_best else (run,))):
        shutil.rmtree(folder / runs.MODEL, ignore_errors=True)


def _write_best(folder: Path, best: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    each = {row["folder"]: runs.load_run(folder / row["folder"]).metrics for row in rows}
    metrics = each[best["folder"]]
    if (folder / best["folder"] / runs.MODEL).is_dir():  # else a stop came just after it
        # Of a smaller grid, whose best point was another.
        shutil.rmtree(folder / runs.MODEL, ignore_errors=True)
        os.rename(folder / best["folder"] / runs.MODEL, folder / runs.MODEL)
    chosen = {key: best[key] for key in GRID_KEYS if key in best}
    metrics |= {"grid": rows, "best": best["folder"], "best_values": chosen}
    metrics["seconds"] = sum(found["seconds"] for found in each.values())
    runs.write_json(metrics, folder / runs.METRICS)
    shutil.copy2(folder / best["folder"] / runs.REPORT, folder / runs.REPORT)


def _words(point: dict[str, Any]) -> str:
    return ", ".join(f"{key} {point[key]:g}" for key in GRID_KEYS if key in point)


def _row(row: dict[str, Any]) -> str:
    deviation = row["standard_deviation"]["validation"][row["monitor"]]
    spread = "" if deviation is None else f" +- {deviation:.4f}"
    return f"  {_words(row)}: {row['monitor']} {row['value']:.4f}{spread}"
