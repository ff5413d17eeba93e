"""Means over the seeds of ladder.py, and the picture of BLEU against the length of sentences.

    python benchmarks/ladder_summary.py FIGURE.svg
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from ladder import RESULTS
from matplotlib.figure import Figure
from side_by_side.ladder_rungs import RUNGS
from side_by_side.machine import machine
from side_by_side.multi30k_data import TESTS
from side_by_side.results import table

from kbert.plots.figures import write_figure
from kbert.storage.files import write_atomically

SUMMARY = RESULTS.with_name("ladder_summary.json")
BLEU = "tokenized_lowercase_bleu"


def mean_and_error(numbers: list[float]) -> tuple[float, float | None]:
    """The mean, and its standard error where there are several numbers."""
    mean = round(statistics.fmean(numbers), 2)
    if len(numbers) < 2:
        return mean, None
    return mean, round(statistics.stdev(numbers) / len(numbers) ** 0.5, 2)


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """One row of the table, from the rows of all seeds of one rung and direction."""
    bleu, error = mean_and_error([row[TESTS[0]][BLEU] for row in rows])
    thirds = [mean_and_error([row["by_third"][i] for row in rows])[0] for i in range(3)]
    shown = {"rung": rows[0]["rung"], "direction": rows[0]["direction"], "seeds": len(rows)}
    return {
        **shown,
        "epochs": rows[0]["epochs"],
        "dropout": rows[0]["dropout"],
        "million weights": round(rows[0]["weights"] / 1e6, 2),
        "bleu, beam 5": bleu,
        "error": error,
        "greedy": mean_and_error([row["greedy"] for row in rows])[0],
        "sacrebleu 13a": mean_and_error([row[TESTS[0]]["bleu"] for row in rows])[0],
        "chrf": mean_and_error([row[TESTS[0]]["chrf"] for row in rows])[0],
        "shortest third": thirds[0],
        "longest third": thirds[2],
        "longest minus shortest": round(thirds[2] - thirds[0], 2),
    }


def grouped(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows of each rung's own dropout and epochs by direction, in the order of the rungs."""
    rows = [row for row in rows if row["dropout"] == RUNGS[row["rung"]].dropout]
    rows = [row for row in rows if row["epochs"] == RUNGS[row["rung"]].epochs]
    directions = sorted({row["direction"] for row in rows})
    groups = [
        [row for row in rows if (row["direction"], row["rung"]) == (direction, rung)]
        for direction in directions
        for rung in RUNGS
    ]
    return [group for group in groups if group]


def picture(groups: list[list[dict[str, Any]]]) -> Figure:
    """BLEU against the mean length of the source, a panel for each direction."""
    directions = list(dict.fromkeys(group[0]["direction"] for group in groups))
    figure = Figure(figsize=(5 * len(directions) + 2, 4), layout="constrained")
    axes = figure.subplots(1, len(directions), sharey=True, squeeze=False)[0]
    for axis, direction in zip(axes, directions):
        for group in (g for g in groups if g[0]["direction"] == direction):
            parts = list(zip(*(row["by_length"] for row in group)))
            words = [part[0]["words"] for part in parts]
            bleu = [statistics.fmean(one["bleu"] for one in part) for part in parts]
            rung = group[0]["rung"]
            color = f"C{list(RUNGS).index(rung)}"  # the same where a direction lacks a rung
            axis.plot(words, bleu, marker="o", color=color, label=rung)
        axis.set_title(direction)
        axis.set_xlabel("words of the source")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("BLEU of a sixth of the test set")
    fullest = max(axes, key=lambda axis: len(axis.lines))
    figure.legend(handles=fullest.lines, loc="outside right center")  # within, it hides curves
    return figure


def main() -> None:
    """Writes the summary and the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("figure", type=Path, help="the picture: .svg, .png or .pdf")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    groups = grouped(json.loads(arguments.results.read_text()))
    rows = [summary(group) for group in groups]
    result = {"machine": machine(), "settings": {"tokens": groups[0][0]["tokens"]}, "rows": rows}
    write_atomically(SUMMARY, json.dumps(result, indent=1) + "\n")
    write_figure(picture(groups), arguments.figure)
    print(table(rows))


if __name__ == "__main__":
    main()
