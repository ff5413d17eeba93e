"""What `--show` prints."""

import io

from rich.console import Console

from kbert.tasks.registry import show_answer


def shown(row, answer):
    """What is printed: the text, and the text with its styles."""
    texts = []
    for color in (None, "truecolor"):
        file = io.StringIO()
        terminal = color is not None
        console = Console(file=file, width=200, force_terminal=terminal, color_system=color)
        show_answer(row, answer, console)
        texts.append(file.getvalue())
    return texts
