"""Results as tables on the screen and as JSON: what was measured, on what kind of machine."""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from side_by_side.contender import SCRIPTS, Contender
from side_by_side.machine import machine

from kbert.storage.files import write_atomically

Row = dict[str, Any]


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """The arguments that all comparisons have."""
    made = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    made.add_argument("--rounds", type=int, default=5, help="turns of each contender")
    made.add_argument(
        "--output",
        type=Path,
        default=SCRIPTS / "results" / f"{name}.json",
        help="where the JSON goes",
    )
    made.add_argument(
        "--peer-python",
        default=os.environ.get("KBERT_PEER_PYTHON", sys.executable),
        help="interpreter with torch and transformers (or KBERT_PEER_PYTHON); default: this one",
    )
    return made


def seeds(text: str) -> range:
    """The seeds that "3" (the first three) or "4-5" (from 4 to 5) stands for."""
    first, _, last = text.rpartition("-")
    return range(int(first or 1), int(last) + 1)


def keep_row(path: Path, row: Row, same: Sequence[str]) -> None:
    """Prints a result, and adds it to a JSON list, where it takes the place of an older one.

    Args:
        path: the file.
        row: the result.
        same: the keys that tell whether an older result is of the same work: all settings that
            it depends on. A result that lacks one of them is of other work.
    """
    print(json.dumps(row), flush=True)
    rows = json.loads(path.read_text()) if path.exists() else []
    rows = [old for old in rows if any(old.get(key) != row[key] for key in same)] + [row]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(rows, indent=1) + "\n")


def write(
    path: Path, tables: dict[str, list[Row]], contenders: Iterable[Contender], settings: Row
) -> None:
    """Writes a JSON file: machine, versions, settings, tables, and who was not run and why.

    Raises:
        SystemExit: a contender of kbert was not run. A file that is there stays as it is: a row
            that is no longer there is not noticed among many.
    """
    contenders = list(contenders)
    broken = [f"{c.name} ({c.failure})" for c in contenders if c.failure and c.name[:5] == "kbert"]
    versions: dict[str, str] = {}
    for contender in contenders:
        versions |= contender.facts.get("versions", {})
    result = {
        "machine": machine(),
        "versions": dict(sorted(versions.items())),
        "settings": settings,
        **tables,
        "not_run": {c.name: c.failure for c in contenders if c.failure},
    }
    if not (broken and path.exists()):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(result, indent=1) + "\n")
    for name, rows in tables.items():
        print(f"\n{name}\n{table(rows)}")
    if broken:
        raise SystemExit(f"Any older {path.name} is kept. Not run: {'; '.join(broken)}")


def table(rows: Sequence[Row], columns: Sequence[str] = ()) -> str:
    """Rows as a Markdown table; what a row lacks stays empty."""
    columns = list(columns) or list(dict.fromkeys(key for row in rows for key in row))
    lines = [[column.replace("_", " ") for column in columns]]
    lines += [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(columns))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
        for line in lines
    )


def _cell(value: Any) -> str:
    if isinstance(value, float) and value >= 100:
        return f"{value:.0f}"
    if isinstance(value, float) and len(str(value)) > 9:  # more than anybody reads
        return f"{value:.2f}" if abs(value) >= 1 else f"{value:.4g}"
    return "" if value is None else str(value)
