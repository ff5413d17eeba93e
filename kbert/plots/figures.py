"""Making and writing figures."""

import io
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbert.storage.atomic_directory import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMATS = (".png", ".svg", ".pdf")


def new_figure(width: float, height: float) -> tuple["Figure", Any]:
    """Makes a figure with one pair of axes, drawn without a display.

    Args:
        width: in inches.
        height: in inches.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def check_ending(path: str | os.PathLike[str]) -> Path:
    """Checks that the extension of a file is that of an image format.

    Args:
        path: The file.

    Returns:
        The file, as a `Path`.

    Raises:
        ValueError: The extension is another one.
    """
    target = Path(path)
    if target.suffix.lower() not in _FORMATS:
        raise ValueError(f"`path` must end in one of {', '.join(_FORMATS)}. Received: {target}")
    return target


def write_figure(figure: "Figure", path: str | os.PathLike[str]) -> Path:
    """Writes a figure atomically.

    Args:
        figure: The figure.
        path: The file; its extension selects the format: .png, .svg or .pdf.

    Returns:
        The file.

    Raises:
        ValueError: The extension is another one.
    """
    target = check_ending(path)
    content = io.BytesIO()
    with warnings.catch_warnings():
        # `kbert.plots.fonts` warned of scripts without a font; matplotlib warns for each letter.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from")
        figure.savefig(content, format=target.suffix.lower()[1:], dpi=150)
    write_atomically(target, content.getvalue())
    return target
