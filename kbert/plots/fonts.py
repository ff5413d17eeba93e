"""Fonts with glyphs for the letters of a text."""

import unicodedata
import warnings
from collections.abc import Iterable
from typing import Any

# A font with a box for every character, and no real glyphs.
_LAST_RESORT = "Last Resort"


def families_for(texts: Iterable[str]) -> list[str]:
    """Returns font families that together draw texts: the default, and others for what it lacks.

    matplotlib takes each letter from the first family that has it. If no installed font has the
    letters of a script, a warning names it, and boxes are drawn.

    Args:
        texts: the texts to draw.

    Returns:
        At least one family.
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
        if not name.startswith(_LAST_RESORT)
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

    faces: dict[str, str] = {}
    for face in sorted(manager.ttflist, key=distance):
        faces.setdefault(face.name, face.fname)
    return faces


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
