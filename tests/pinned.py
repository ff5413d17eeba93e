"""Pins of public formats: what users and their programs read, held against tests/goldens/."""

import difflib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

GOLDENS = Path(__file__).with_name("goldens")
# Set, it makes `check_pinned` write what it is given instead; see tests/goldens/README.md.
WRITE = "KBERT_WRITE_PINS"


def check_pinned(file: str, name: str, found: Any) -> None:
    """Fails with a diff where a format is no longer the pinned one.

    Args:
        file: The file in tests/goldens/, without its end.
        name: The entry in it.
        found: The format today, of dicts, lists and strings.
    """
    path = GOLDENS / f"{file}.yaml"
    pinned = yaml.safe_load(path.read_text("utf-8")) if path.is_file() else {}
    if os.environ.get(WRITE):
        path.write_text(_text({**pinned, name: found}), encoding="utf-8")
        return
    before, now = (_text(one).splitlines() for one in (pinned.get(name), found))
    diff = "\n".join(difflib.unified_diff(before, now, f"pinned: {name}", "found", lineterm=""))
    assert not diff, f"the format is no longer that of {path.name}:\n{diff}"


def structure(value: Any) -> Any:
    """The keys and types of a value that JSON can hold; of a list, those of its elements."""
    if isinstance(value, dict):
        return {key: structure(one) for key, one in value.items()}
    if isinstance(value, list):
        kinds = [structure(one) for one in value]
        return [kind for i, kind in enumerate(kinds) if kind not in kinds[:i]]
    return "none" if value is None else type(value).__name__


def files_in(folder: Path) -> list[str]:
    """The paths of all files in a folder, sorted; names of TensorBoard's files end with `*`."""
    paths = (f.relative_to(folder).as_posix() for f in folder.rglob("*") if f.is_file())
    return sorted({re.sub(r"/events\.out\..*", "/events.out.*", path) for path in paths})


def check_run(name: str, folder: Path, looked_into: Iterable[str]) -> None:
    """Holds the folder of a finished run against its pin.

    Args:
        name: The entry in tests/goldens/run_folders.yaml.
        folder: The folder.
        looked_into: The files of it whose content is pinned too.
    """
    found: dict[str, Any] = {"files": files_in(folder)}
    for file in looked_into:
        text = (folder / file).read_text("utf-8")
        if file.endswith(".txt"):
            found[file] = log_shapes(text)
        else:
            found[file] = structure(yaml.safe_load(text) if "yaml" in file else json.loads(text))
    if "environment.json" in found:  # which variables are set is no matter of the format
        found["environment.json"]["variables"] = {}
    check_pinned("run_folders", name, found)


def log_shapes(text: str) -> list[str]:
    """The lines of a log.txt, each kind once: without warnings, numbers, paths and "kept"."""
    lines = [re.sub(r"^\S+Z  ", "TIME  ", line) for line in text.splitlines()]
    lines = [re.sub(r"(?<!\w)/[^\s,):]+", "PATH", line.removesuffix(", kept")) for line in lines]
    lines = [re.sub(r"(?<!\w)-?\d(?:[\d.,e+-]*\d)?", "N", line) for line in lines]
    return list(dict.fromkeys(line for line in lines if "Warning" not in line))


def _text(value: Any) -> str:
    return yaml.safe_dump(value, allow_unicode=True, width=1000)
