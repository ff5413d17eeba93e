"""Sliding windows in plain Python, written from google-research/bert `run_squad.py`.

`windows_of` is its loop over the document, `widest` its `_check_is_max_context`: of the windows
that hold a token the one with the most context on the poorer side, the first of equals. Its term
for the length of a window, a hundredth of it, is left out, as the docstring of `Windows` says.
Nothing of kbert in it.
"""

from typing import NamedTuple


class Window(NamedTuple):
    """A window: the row it comes from, its first context token, and how many it has."""

    row: int
    first: int
    size: int

    @property
    def tokens(self) -> range:
        """The context tokens in it."""
        return range(self.first, self.first + self.size)


def windows_of(row: int, tokens: int, room: int, step: int) -> list[Window]:
    """The windows of a context of so many tokens, with room for so many."""
    found = []
    start = 0
    while start < tokens:
        size = min(tokens - start, room)
        found.append(Window(row, start, size))
        if start + size == tokens:
            break
        start += min(size, step)
    return found or [Window(row, 0, 0)]  # a row without tokens has a window too


def widest(windows: list[Window], token: int) -> int:
    """The number of the window of one row that answers for a token."""
    best, best_context = -1, -1
    for number, window in enumerate(windows):
        if token not in window.tokens:
            continue
        context = min(token - window.first, window.first + window.size - 1 - token)
        if context > best_context:
            best, best_context = number, context
    return best


def owned_by_window(windows: list[Window]) -> list[list[int]]:
    """The tokens that each window of one row answers for."""
    owned: list[list[int]] = [[] for _ in windows]
    for token in range(max(window.first + window.size for window in windows)):
        owned[widest(windows, token)].append(token)
    return owned


class Laid(NamedTuple):
    """A window as inputs of BERT: ids, segments, and the context token of each cell or -1."""

    ids: list[int]
    segments: list[int]
    positions: list[int]


def lay(
    question: list[int] | None, context: list[int], window: Window, cls: int, sep: int
) -> Laid:
    """[CLS] context [SEP], or [CLS] question [SEP] context [SEP] (Devlin et al., figure 4)."""
    ids, segments, positions = [cls], [0], [-1]
    if question is not None:
        for token in [*question, sep]:
            ids.append(token)
            segments.append(0)
            positions.append(-1)
    second = 0 if question is None else 1
    for position in window.tokens:
        ids.append(context[position])
        segments.append(second)
        positions.append(position)
    return Laid([*ids, sep], [*segments, second], [*positions, -1])
