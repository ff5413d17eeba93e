import warnings

import pytest
from matplotlib import font_manager

from kbert.plots.figures import families_for

USUAL = "DejaVu Sans"  # matplotlib's own


def test_the_usual_font_is_enough():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert families_for(["Garten", "привет", "שלום", "\u2581a", "\t"]) == [USUAL]
        assert families_for([]) == [USUAL]


def test_another_font_has_the_letter():
    """U+1D81 is no letter of DejaVu Sans, but one of STIXGeneral, which matplotlib brings along."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        families = families_for(["a\u1d81"])
    assert families[0] == USUAL and len(families) == 2


@pytest.mark.parametrize("turned", [False, True])
def test_it_is_the_face_that_is_drawn_with(monkeypatch, turned):
    """STIXGeneral has the letter upright alone; in what order its faces were found says nothing."""
    own = [face for face in font_manager.fontManager.ttflist if "mpl-data" in face.fname]
    faces = sorted(own, key=lambda face: face.fname, reverse=turned)
    monkeypatch.setattr(font_manager.fontManager, "ttflist", faces)
    assert families_for(["\u1d81"]) == [USUAL, "STIXGeneral"]


def test_a_script_that_no_font_has():
    # Cuneiform, Latin, and an unassigned code point, which nobody could draw.
    message = "No installed font has all letters of: Cuneiform. Boxes are drawn instead."
    with pytest.warns(UserWarning, match=message):
        assert families_for(["\U00012000", "a", "\U000378ff"]) == [USUAL]
