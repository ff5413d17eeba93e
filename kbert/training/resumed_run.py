"""Whether what a stopped run left is of the run that is to go on with it."""

import json
from pathlib import Path
from typing import Any

from kbert.training.config_file import read_config_file
from kbert.training.configuration import Configuration
from kbert.training.run_directory import CONFIG, REPORT

# They say how a run is started, not what it does.
_OF_THE_START = ("output", "overwrite", "resume")


def check_same_run(folder: Path, config: Configuration) -> None:
    """Checks that a stopped run had the same configuration.

    Args:
        folder: What the run left.
        config: The configuration that it is to go on with.

    Raises:
        ValueError: It had another one (the message names the keys), or its file is damaged.
    """
    if not (folder / CONFIG).is_file():
        return  # it was stopped before it wrote anything
    before, now = read_config_file(folder / CONFIG), config.to_dict()
    keys = [key for key in now if key not in _OF_THE_START and before.get(key) != now[key]]
    if keys:
        told = ", ".join(f"{key}={now[key]!r} (it had {before.get(key)!r})" for key in keys)
        raise ValueError(
            f"`resume` must go on with the same configuration as in {folder / CONFIG}. Received: "
            f"{told}"
        )


def check_same_data(folder: Path, sha256: str) -> None:
    """Checks that a stopped run had the same data.

    Args:
        folder: What the run left.
        sha256: Hash of the data that it is to go on with.

    Raises:
        ValueError: It had others, or its report is damaged.
    """
    if not (folder / REPORT).is_file():
        return
    try:
        report: dict[str, Any] = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{folder / REPORT} must be JSON. Received: {error}") from error
    if report.get("data_sha256") != sha256:
        raise ValueError(
            f"`resume` must go on with the same data as the run in {folder}. Received: "
            "others; the files have changed since"
        )
