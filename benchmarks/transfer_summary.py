"""Writes the tables of docs/transfer.md from results/transfer.json and results/forgetting.json.

    python benchmarks/transfer_summary.py

Between `<!-- transfer -->` and `<!-- end -->` stands a row for each way: mean and standard
deviation (of the sample) of each task's score, how many seeds if not 5, and what it trains. Between
`<!-- forgetting -->` and `<!-- end -->`, of 3 seeds, the scores of the first task before and after
the second was learned, and those of the second.
"""

import json
import re
import statistics
from typing import Any

from side_by_side.contender import SCRIPTS
from side_by_side.results import table
from side_by_side.transfer_rows import EVERY, ROWS

PAGE = SCRIPTS.parent / "docs" / "transfer.md"
SEEDS = 5
SEEDS_OF_FORGETTING = 3


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


def forgetting(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each way to learn two tasks, in the order of the results."""
    columns = {"SICK before": "first_before", "SICK after": "first_after", "CoLA": "second"}
    rows = []
    for way in dict.fromkeys(one["way"] for one in results):
        found = [one for one in results if one["way"] == way]
        scores = {c: [one[key] for one in found if key in one] for c, key in columns.items()}
        spreads = {c: spread(some, SEEDS_OF_FORGETTING) for c, some in scores.items()}
        rows.append({"": way, **spreads})
    return rows


def spread(scores: list[float], seeds: int = SEEDS) -> str:
    """Mean and deviation in words; "" for none."""
    if not scores:
        return ""
    count = "" if len(scores) == seeds else f" ({len(scores)} seed{'s' * (len(scores) > 1)})"
    if len(scores) == 1:
        return f"{scores[0]:.3f}{count}"
    return f"{statistics.fmean(scores):.3f} ± {statistics.stdev(scores):.3f}{count}"


def main() -> None:
    """Rewrites the page."""
    text = PAGE.read_text()
    for name, rows_of in (("transfer", summary), ("forgetting", forgetting)):
        rows = rows_of(json.loads((SCRIPTS / "results" / f"{name}.json").read_text()))
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = place.sub(lambda found: f"{found[1]}\n{table(rows)}\n\n{found[2]}", text)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
