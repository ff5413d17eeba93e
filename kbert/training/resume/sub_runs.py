"""Sub-runs of a run: those of its seeds, or the points of its grid."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbert.options.yaml_file import read_config_file
from kbert.training.config.any_config import AnyConfig
from kbert.training.resume.resumed_run import changed_data, changed_keys
from kbert.training.runs.run_directory import (
    CONFIG,
    INCOMPLETE,
    MODEL,
    REPORT,
    write_config,
    write_json,
)
from kbert.training.runs.run_log import RunLog


def changed_examples(kept: Path | None, config: AnyConfig, data: Any) -> bool:
    """Checks that a stopped run had the same examples, before anything is written.

    Args:
        kept: The folder of the stopped run, or None.
        config: The configuration of the whole run.
        data: The examples, with `hashes`.

    Returns:
        Whether the examples have changed, where `allow_config_change` allows that.

    Raises:
        ValueError: It had other examples, or its report is damaged.
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
    """Keeps the sub-runs of an earlier process, except those of another configuration or data.

    Results of sub-runs are compared with each other: each must be of its own configuration in
    `parts`, and of the same examples.

    Args:
        folder: The folder of the whole run.
        config: The configuration of the whole run.
        data: The examples, with `hashes`.
        parts: The configuration of each sub-run, by the name of its folder.
        log: The log, which reports each removed sub-run.
        changed: Whether the examples have changed.
        together: Whether all sub-runs are removed if one is: the models of some are gone.
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
