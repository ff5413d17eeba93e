import numpy as np
from rich.console import Console

from kbert.cli.actions.demo import show_alignment


def printed(*arguments):
    console = Console(width=60, force_terminal=False)
    with console.capture() as capture:
        show_alignment(*arguments, console)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_line_for_each_word():
    weights = np.array([[0.75, 0.25, 0.0], [0.05, 0.2, 0.75]])
    assert printed(["a", "[bold]", "</s>"], ["ein", "Ball"], weights) == [
        "translation  from  weight  whole source",
        "ein          a       0.75  \u2588\u2591",
        "Ball         </s>    0.75   \u2591\u2588",
    ]


def test_brackets_are_no_markup():
    assert printed(["[bold]"], ["[/x]"], np.ones((1, 1)))[1].split() == [
        *("[/x]", "[bold]", "1.00", "\u2588")
    ]


def test_an_empty_translation():
    assert printed(["</s>"], [], np.zeros((0, 1))) == ["nothing to translate"]
