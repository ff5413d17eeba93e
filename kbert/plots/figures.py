"""How pictures are drawn and written."""

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
    """A figure with one pair of axes, drawn without a display.

    Args:
        width: inches.
        height: inches.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def check_ending(path: str | os.PathLike[str]) -> Path:
    """Checks that the ending of a file says a format of pictures.

    Args:
        path: The file.

    Returns:
        It, as a `Path`.

    Raises:
        ValueError: The ending is another one.
    """
    target = Path(path)
    if target.suffix.lower() not in _FORMATS:
        raise ValueError(f"`path` must end in one of {', '.join(_FORMATS)}. Received: {target}")
    return target


def write_figure(figure: "Figure", path: str | os.PathLike[str]) -> Path:
    """Writes a figure whole or not at all.

    Args:
        figure: The figure.
        path: The file; its ending says the format: .png, .svg or .pdf.

    Returns:
        The file.

    Raises:
        ValueError: The ending is another one.
    """
    target = check_ending(path)
    content = io.BytesIO()
    with warnings.catch_warnings():
        # `kbert.plots.fonts` has told which scripts have no font; matplotlib tells it a letter.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from")
        figure.savefig(content, format=target.suffix.lower()[1:], dpi=150)
    write_atomically(target, content.getvalue())
    return target
