"""Precision, recall and F1 of each label as a table for people, on stderr."""

from typing import Any

from rich.console import Console
from rich.table import Table


def show_labels(metrics: dict[str, Any], console: Console | None = None) -> None:
    """Draws the table; draws nothing for metrics without labels.

    Args:
        metrics: From `kbert.training.finetuning.evaluation.measure`.
        console: Where to draw; by default stderr.
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
