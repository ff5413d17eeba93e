"""Renders the tables of docs/benchmarks/ from benchmarks/results/*.json.

    python benchmarks/report.py

Between `<!-- table NAME KEY -->` and `<!-- end -->` of a page stands the table KEY of
results/NAME.json (the whole file if it is a list), with the machine and the versions that it was
measured with. Nothing in between is written by hand.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from side_by_side.contender import SCRIPTS
from side_by_side.results import table

PAGES = SCRIPTS.parent / "docs" / "benchmarks"
_PLACE = re.compile(r"(<!-- table (\w+) ?(\w*) -->\n).*?(<!-- end -->)", re.DOTALL)


def circumstances(result: dict[str, Any]) -> str:
    """Machine, versions and settings in words."""
    machine = dict(result.get("machine", {}))
    flags = machine.pop("flags", [])
    lines = {"Machine": [*worded({k.replace('_', ' '): v for k, v in machine.items()}), *flags]}
    for title, key in (("Versions", "versions"), ("Settings", "settings"), ("Not run", "not_run")):
        lines[title] = worded(result.get(key, {}))
    return "\n".join(f"{title}: {', '.join(texts)}.  " for title, texts in lines.items() if texts)


def worded(facts: dict[str, Any]) -> list[str]:
    """Each fact as its name and its value."""
    return [f"{name} {str(value).rstrip('.')}" for name, value in facts.items()]


def by_part(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each part that was measured, or the row itself; of parts only the numbers."""
    parts = {name: value for name, value in row.items() if isinstance(value, dict)}
    common = {name: value for name, value in row.items() if name not in parts}
    rows = [
        common | {"measured on": name} | {k: v for k, v in part.items() if not isinstance(v, str)}
        for name, part in parts.items()
    ]
    return rows or [row]


def rendered(name: str, key: str, results: Path) -> str:
    """The table KEY of NAME.json, or a word that there is none."""
    path = results / f"{name}.json"
    if not path.exists():
        return "Not measured yet.\n"
    result = json.loads(path.read_text())
    if isinstance(result, list):
        return table([part for row in result for part in by_part(row)]) + "\n"
    return f"{table(result[key])}\n\n{circumstances(result)}\n"


def rewritten(text: str, results: Path) -> str:
    """The text of a page with its tables as the results are."""

    def place(found: re.Match[str]) -> str:
        begin, name, key, end = found.groups()
        return f"{begin}\n{rendered(name, key, results)}\n{end}"

    return _PLACE.sub(place, text)


def main() -> None:
    """Rewrites the pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=SCRIPTS / "results")
    parser.add_argument("--pages", type=Path, default=PAGES, help="folder of the pages")
    arguments = parser.parse_args()
    for page in sorted(arguments.pages.glob("*.md")):
        page.write_text(rewritten(page.read_text(), arguments.results))


if __name__ == "__main__":
    main()
