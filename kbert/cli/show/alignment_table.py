"""What each word of a translation comes from, for a terminal."""

from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

_SHADES = " \u2591\u2592\u2593\u2588"


def show_alignment(
    source: Sequence[str], target: Sequence[str], weights: np.ndarray, console: Console
) -> None:
    """Prints a line for each word of a translation: what it comes from most, and shades for all.

    The shades stand in the order of the source, a character for each of its words; the darkest is
    the largest weight of the table.

    Args:
        source: S words.
        target: T words.
        weights: (T, S), each row a distribution.
        console: where to print.
    """
    if not len(target):
        console.print(Text("nothing to translate", style="dim"))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("translation", "from", "weight", "whole source"):
        table.add_column(heading, justify="right" if heading == "weight" else "left")
    most = np.max(weights)
    for word, row in zip(target, weights, strict=True):
        best = int(np.argmax(row))
        shades = "".join(_SHADES[round(4 * float(weight / most))] for weight in row)
        table.add_row(
            Text(word), Text(source[best], style="cyan"), f"{row[best]:.2f}", Text(shades)
        )
    console.print(table)
