"""Grid search over batch sizes, learning rates and epochs; the best point is chosen on validation.

Source of the default grid: Devlin et al. 2019, appendix A.3 (batch 16, 32; Adam's rate 5e-5, 3e-5,
2e-5; without its 2 epochs).
"""

import itertools
import os
import shutil
from pathlib import Path
from typing import Any

from kbert.training.callbacks.epoch_record import is_better
from kbert.training.config.finetuning_config import GRID_KEYS, RunConfig
from kbert.training.finetuning.examples import RunData, read_run_data
from kbert.training.recipes.finetuning import train_once
from kbert.training.runs.run_directory import METRICS, MODEL, REPORT, load_run, write_json
from kbert.training.runs.run_log import RunLog
from kbert.training.seeds import folder_of_parts, summarize, train_seeds

GRID: dict[str, list[Any]] = {
    "batch_size": [16, 32],
    "learning_rate": [5e-5, 3e-5, 2e-5],
    "epochs": [3, 4],
}


def grid_points(config: RunConfig) -> list[dict[str, Any]]:
    """Returns the points of a configuration's grid, each a dict of values.

    Args:
        config: A configuration with `grid` true (the published grid) or lists of values.

    Raises:
        ValueError: A value of the grid is invalid; the message names key and value.
    """
    chosen = config.grid if isinstance(config.grid, dict) else GRID
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
    ones = [_of_point(config, point) for point in points]
    parts = {f"grid-{number}": one for number, one in enumerate(ones, start=1)}
    with folder_of_parts(config, parts, read_run_data, None, log, together=True) as (folder, data):
        rows: list[dict[str, Any]] = []
        best: dict[str, Any] | None = None
        for point, (name, own) in zip(points, parts.items()):
            log.line(f"-- grid {len(rows) + 1} of {len(points)}: {_words(point)}")
            run = folder / name
            if not run.is_dir():  # else it was finished before a stop
                _train_point(own.with_values(output=str(run)), data)
            row = {"folder": run.name, **point, **_summary(run, config)}
            rows.append(row)
            log.line(_row(row))
            if best is None or is_better(row["monitor"], *map(_validation, (row, best))):
                best = row
            # The previous best may no longer be the best.
            for other in rows:
                _drop_models(folder / other["folder"], other is best)
        if best is not None:
            _write_best(folder, best, rows)
            told = f"best:{_row(best).removeprefix(' ')}  ({best['folder']})"
            log.line("\n".join(["the grid:", *map(_row, rows), told]))
    return Path(config.output or "")


def _of_point(config: RunConfig, point: dict[str, Any]) -> RunConfig:
    """Returns the configuration of a point of the grid."""
    return config.with_values(**point, grid=False, overwrite=False)


def _train_point(config: Any, data: RunData) -> Path:
    return train_seeds(config, data) if config.seeds > 1 else train_once(config, data)


def _summary(run: Path, config: RunConfig) -> dict[str, Any]:
    """Returns the monitored metric of a point: mean and deviation over its seeds."""
    metrics = load_run(run).metrics
    summary = metrics if config.seeds > 1 else summarize({config.seed: metrics})
    monitor = summary["monitor"]
    return {
        "monitor": monitor,
        "value": summary["mean"]["validation"][monitor],
        "mean": summary["mean"],
        "standard_deviation": summary["standard_deviation"],
    }


def _validation(row: dict[str, Any]) -> dict[str, float]:
    """Returns the metrics by which a point is compared: the means over its seeds."""
    measured: dict[str, float] = row["mean"]["validation"]
    return measured


def _drop_models(run: Path, is_best: bool) -> None:
    """Removes large weights: only those of the best point are kept."""
    for folder in (*run.glob("seed-*"), *(() if is_best else (run,))):
        shutil.rmtree(folder / MODEL, ignore_errors=True)


def _write_best(folder: Path, best: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    metrics = load_run(folder / best["folder"]).metrics
    if not (folder / MODEL).is_dir():  # else a stop came just after it
        os.rename(folder / best["folder"] / MODEL, folder / MODEL)
    chosen = {key: best[key] for key in GRID_KEYS if key in best}
    told = {"grid": rows, "best": best["folder"], "best_values": chosen}
    write_json({**metrics, **told}, folder / METRICS)
    shutil.copy2(folder / best["folder"] / REPORT, folder / REPORT)


def _words(point: dict[str, Any]) -> str:
    return ", ".join(f"{key} {point[key]:g}" for key in GRID_KEYS if key in point)


def _row(row: dict[str, Any]) -> str:
    deviation = row["standard_deviation"]["validation"][row["monitor"]]
    spread = "" if deviation is None else f" +- {deviation:.4f}"
    return f"  {_words(row)}: {row['monitor']} {row['value']:.4f}{spread}"
