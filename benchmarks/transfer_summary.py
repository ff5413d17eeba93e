"""Writes the table of docs/transfer.md from results/transfer.json: means over the seeds.

    python benchmarks/transfer_summary.py

Between `<!-- transfer -->` and `<!-- end -->` stands a row for each way: mean and standard
deviation (of the sample) of each task's score, how many seeds if not 5, and what it trains.
"""

import json
import re
import statistics
from typing import Any

from side_by_side.contender import SCRIPTS
from side_by_side.results import table
from side_by_side.transfer_rows import EVERY, ROWS

PAGE = SCRIPTS.parent / "docs" / "transfer.md"
_PLACE = re.compile(r"(<!-- transfer -->\n).*?(<!-- end -->)", re.DOTALL)
SEEDS = 5


def summary(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each way that was measured, in the order of the ways."""
    rows = []
    for way in ROWS:
        found = [one for one in results if one["row"] == way]
        if not found:
            continue
        row: dict[str, Any] = {"": way}
        for task in EVERY:
            row[task] = spread([one["score"] for one in found if one["task"] == task])
        weights = max(one["trained_weights"] for one in found)
        row["trained weights"] = f"{weights:,}"
        row["MB of a task"] = f"{4 * weights / 1e6:.1f}"
        rows.append(row)
    return rows


def spread(scores: list[float]) -> str:
    """Mean and deviation in words; "" for none."""
    if not scores:
        return ""
    count = "" if len(scores) == SEEDS else f" ({len(scores)} seed{'s' * (len(scores) > 1)})"
    if len(scores) == 1:
        return f"{scores[0]:.3f}{count}"
    return f"{statistics.fmean(scores):.3f} ± {statistics.stdev(scores):.3f}{count}"


def main() -> None:
    """Rewrites the page."""
    rows = summary(json.loads((SCRIPTS / "results" / "transfer.json").read_text()))
    text = PAGE.read_text()
    PAGE.write_text(_PLACE.sub(lambda found: f"{found[1]}\n{table(rows)}\n\n{found[2]}", text))


if __name__ == "__main__":
    main()
