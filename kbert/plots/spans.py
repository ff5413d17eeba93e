"""Start and end probabilities of an answer along the text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kbert.plots.figures import new_figure
from kbert.plots.labels import label_style, readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INCHES_PER_TOKEN = 0.16
_MOST_TOKENS = 120


def plot_span(
    tokens: Sequence[str],
    start: np.ndarray,
    end: np.ndarray,
    span: tuple[int, int] | None,
    title: str = "",
) -> "Figure":
    """Draws the probabilities of start and end over the tokens of a text.

    Of a long text the part around the likeliest start is shown.

    Args:
        tokens: the text's tokens, n.
        start: (n,), the probability that the answer begins with each.
        end: (n,), the probability that it ends with each.
        span: first and last token of the answer, or None.
        title: title of the figure, for example the question.

    Raises:
        ValueError: the lengths differ.
    """
    if not len(tokens) == len(start) == len(end):
        raise ValueError(
            "`start` and `end` must have a value for each token. Received: "
            f"{len(tokens)} tokens, {len(start)} and {len(end)} values"
        )
    middle = int(np.argmax(start)) if len(tokens) else 0
    first = max(0, min(middle - _MOST_TOKENS // 2, len(tokens) - _MOST_TOKENS))
    shown = slice(first, min(len(tokens), first + _MOST_TOKENS))
    places = np.arange(len(tokens))[shown]
    figure, axes = new_figure(max(6.0, _INCHES_PER_TOKEN * len(places)), 3.2)
    if span is not None:
        axes.axvspan(span[0] - 0.5, span[1] + 0.5, color="#d9ead3", label="answer")
    axes.bar(places - 0.2, np.asarray(start)[shown], 0.4, color="#1f77b4", label="start")
    axes.bar(places + 0.2, np.asarray(end)[shown], 0.4, color="#d62728", label="end")
    labels = readable(tokens[shown])
    axes.set_xticks(places, labels, rotation=90, **label_style(labels, 7))
    axes.set_xlim(first - 1, places[-1] + 1 if len(places) else 1)
    axes.set_ylim(0, 1)
    axes.set_ylabel("probability")
    (title,) = readable([title])
    axes.set_title(title, **label_style([title], 10))
    axes.legend(loc="upper right", fontsize=8)
    return figure
