"""Tables for a terminal: scores of each label, and alignments of translations."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


def show_labels(metrics: dict[str, Any], console: Console | None = None) -> None:
    """Prints the scores of each label; nothing for metrics without labels.

    Args:
        metrics: From `FinetunedTask.measure_predictions`.
        console: The console to print to; by default stderr.
    """
    per_class = metrics.get("per_class")
    if not per_class:
        return
    table = Table("label", "precision", "recall", "F1", "examples")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, row in per_class.items():
        numbers = [f"{row[key]:.3f}" for key in ("precision", "recall", "f1")]
        table.add_row(name, *numbers, str(row["support"]))
    table.add_section()
    macro, support = metrics["macro_f1"], sum(row["support"] for row in per_class.values())
    table.add_row("all: accuracy", f"{metrics['accuracy']:.3f}", "", f"{macro:.3f}", str(support))
    (console or Console(stderr=True)).print(table)


_SHADES = " \u2591\u2592\u2593\u2588"


def show_alignment(
    source: Sequence[str], target: Sequence[str], weights: Any, console: Console
) -> None:
    """Prints a line for each word of a translation: its main source word, and shades of all.

    The shades are in the order of the source, one character per word; the darkest is the largest
    weight of the table.

    Args:
        source: S words.
        target: T words.
        weights: (T, S), each row a distribution.
        console: the console to print to.
    """
    if not len(target):
        console.print(Text("nothing to translate", style="dim"))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("translation", "from", "weight", "whole source"):
        table.add_column(heading, justify="right" if heading == "weight" else "left")
    most = weights.max()
    for word, row in zip(target, weights, strict=True):
        best = int(row.argmax())
        shades = "".join(_SHADES[round(4 * float(weight / most))] for weight in row)
        table.add_row(
            Text(word), Text(source[best], style="cyan"), f"{row[best]:.2f}", Text(shades)
        )
    console.print(table)
