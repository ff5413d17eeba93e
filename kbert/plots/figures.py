"""Making and writing figures, and their labels: readable tokens in fonts with their letters."""

import io
import os
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbert.storage.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS_PER_INCH = 72
_FORMATS = (".png", ".svg", ".pdf")


def new_figure(width: float, height: float) -> tuple["Figure", Any]:
    """Makes a figure, sizes in inches, with one pair of axes, drawn without a display."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def check_ending(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Checks that the extension of the file `name` is that of an image format, and returns it."""
    target = Path(path)
    if target.suffix.lower() not in _FORMATS:
        raise ValueError(f"`{name}` must end in one of {', '.join(_FORMATS)}. Received: {target}")
    return target


def write_figure(figure: "Figure", path: str | os.PathLike[str]) -> Path:
    """Writes a figure atomically; the extension selects the format: .png, .svg or .pdf."""
    target = check_ending(path)
    content = io.BytesIO()
    with warnings.catch_warnings():
        # `families_for` warned of scripts without a font; matplotlib warns for each letter.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from")
        figure.savefig(content, format=target.suffix.lower()[1:], dpi=150)
    write_atomically(target, content.getvalue())
    return target


def families_for(texts: Iterable[str]) -> list[str]:
    """Returns font families that together draw texts: the default, and others for what it lacks.

    matplotlib takes each letter from the first family that has it. If no installed font has the
    letters of a script, a warning names it, and boxes are drawn.
    """
    from matplotlib import font_manager

    usual = font_manager.findfont(font_manager.FontProperties())
    families = [font_manager.get_font(usual).family_name]
    drawn = {ord(c) for text in texts for c in text if unicodedata.category(c)[0] not in "CZ"}
    missing = drawn - _letters_of(usual)
    if not missing:
        return families
    letters = {
        name: missing & _letters_of(path)
        for name, path in sorted(_upright_faces().items())
        if not name.startswith("Last Resort")  # a box for every character, and no real glyphs
    }
    while missing:
        best = max(letters, key=lambda name: len(letters[name] & missing))
        if not letters[best] & missing:
            break
        families.append(best)
        missing -= letters[best]
    if missing:
        scripts = sorted({_script_of(chr(number)) for number in missing})
        warnings.warn(
            f"No installed font has all letters of: {', '.join(scripts)}. Boxes are drawn instead. "
            "Fonts for most scripts come with the package fonts-noto of many systems.",
            stacklevel=2,
        )
    return families


def _upright_faces() -> dict[str, str]:
    """Returns the file of each family's regular face, which is drawn with: not bold, not italic.

    The other faces may have fewer letters, and matplotlib lists them in any order.
    """
    from matplotlib import font_manager

    manager, usual = font_manager.fontManager, font_manager.FontProperties()

    def distance(face: Any) -> float:
        return (
            manager.score_style(usual.get_style(), face.style)
            + manager.score_variant(usual.get_variant(), face.variant)
            + manager.score_weight(usual.get_weight(), face.weight)
            + manager.score_stretch(usual.get_stretch(), face.stretch)
        )

    # The nearest face of each name comes last, and replaces the others.
    nearest_last = reversed(sorted(manager.ttflist, key=distance))
    return {face.name: face.fname for face in nearest_last}


def _letters_of(path: str) -> set[int]:
    from matplotlib import font_manager

    try:
        return set(font_manager.get_font(path).get_charmap())
    except (OSError, RuntimeError):
        return set()  # it cannot be read, so it cannot be drawn with


def _script_of(character: str) -> str:
    """Returns the readable name of a script: "Myanmar", "CJK", "symbols"."""
    if unicodedata.category(character)[0] not in "LMN":
        return "symbols"
    word = unicodedata.name(character, "unnamed letters").split()[0]
    return word if word == "CJK" else word.title()


# Control characters and surrogates -> how Python writes them: \n, \x00, \ud800.
_ESCAPED = {n: ascii(chr(n))[1:-1] for n in (*range(32), *range(127, 160), *range(0xD800, 0xE000))}


def readable(tokens: Iterable[str]) -> list[str]:
    """Returns tokens with control characters escaped, so that none breaks a line or a figure."""
    return [token.translate(_ESCAPED) for token in tokens]


def label_style(labels: Sequence[str], size: float) -> dict[str, Any]:
    """Returns matplotlib's properties of labels: size in points, fonts with their letters."""
    # A "$" would begin a formula.
    return {"fontsize": size, "fontfamily": families_for(labels), "parse_math": False}


def longest_inches(labels: Iterable[str], size: float) -> float:
    """Estimates the width in inches of the longest of some labels, of a size in points."""
    return max(map(_ems, labels)) * size / POINTS_PER_INCH


def _ems(text: str) -> float:
    """Estimates the width of a text in units of its font size."""
    return sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.55 for c in text)
