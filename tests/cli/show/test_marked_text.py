import io

import pytest
from rich.console import Console

from kbert.cli.show.marked_text import show_marked


def shown(row, answer):
    """What is printed: the text, and the text with its styles."""
    texts = []
    for color in (None, "truecolor"):
        file = io.StringIO()
        terminal = color is not None
        console = Console(file=file, width=200, force_terminal=terminal, color_system=color)
        show_marked(row, answer, console)
        texts.append(file.getvalue())
    return texts


def test_an_answer_in_its_text():
    nbest = [{"answer": "York", "score": 0.5, "start": 9, "end": 13}]
    answer = {"answer": "York", "start": 9, "end": 13, "has_answer": True, "nbest": nbest}
    plain, styled = shown(("Where?", "Ann from York came"), answer)
    assert plain.splitlines()[:3] == ["Where?", "Ann from York came", "  1. York  0.500"]
    assert "\x1b[1;30;42mYork\x1b[0m came" in styled


def test_a_long_text_is_cut_around_the_answer():
    text = "x" * 1000 + "York" + "y" * 1000
    nbest = [{"answer": "York", "score": 0.5, "start": 1000, "end": 1004}]
    answer = {"answer": "York", "start": 1000, "end": 1004, "has_answer": True, "nbest": nbest}
    plain = "".join(shown(("Where?", text), answer)[0].split("\n"))
    assert "... " + "x" * 300 + "York" + "y" * 300 + " ..." in plain


def test_no_answer():
    answer = {"answer": "", "score": 0.75, "has_answer": False, "nbest": []}
    assert shown(("Where?", "text"), answer)[0].splitlines()[1] == "no answer (0.75)"


def test_entities_with_a_style_a_type():
    entities = [
        {"entity": "Ann", "label": "PER", "start": 0, "end": 3},
        {"entity": "York", "label": "LOC", "start": 9, "end": 13},
    ]
    plain, styled = shown(("Ann from York[x]",), {"entities": entities})
    assert plain.splitlines()[0] == "[Ann PER] from [York LOC][x]"
    assert "\x1b[1;30;43m[Ann\x1b[0m" in styled and "\x1b[1;30;46m[York\x1b[0m" in styled


def test_several_answers():
    answers = [{"answer": "a", "start": 0, "end": 1}, {"answer": "b", "start": 2, "end": 3}]
    assert shown(("?", "a b c"), {"answers": answers})[0].splitlines()[:2] == ["?", "a b c"]
    assert "no answer" in shown(("?", "a b c"), {"answers": []})[0]


def test_words_for_masks():
    words = [[("big", 0.5), ("red", 0.25)], [("##s", 1.0)]]
    masks = [
        {"words": [{"word": w, "score": s} for w, s in some], "start": start, "end": start + 6}
        for some, start in zip(words, (2, 13))
    ]
    answer = {"filled": "a big dog", "masks": masks}
    plain, styled = shown(("a [MASK] dog [MASK][x]",), answer)
    expected = ["a big dog ##s[x]", "  1. big 0.500, red 0.250", "  2. ##s 1.000"]
    assert plain.splitlines()[:3] == expected
    assert "a \x1b[1;30;42mbig\x1b[0m dog" in styled
    assert shown(("none",), {"filled": "none", "masks": []})[0].splitlines() == ["none", ""]


def test_a_model_that_marks_nothing():
    with pytest.raises(ValueError, match="`--show` must be given for a model that marks places"):
        show_marked(("a",), {"label": "x"}, Console(file=io.StringIO()))
