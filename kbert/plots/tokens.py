"""Pictures over tokens and words: attention, word alignments, the probabilities of an answer."""

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kbert.plots.figures import label_style, new_figure, readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INCHES_PER_TOKEN = 0.16
_MOST_TOKENS = 120  # of a text along which an answer is drawn
_INCHES_PER_WORD = 0.28
# A longer side is many thousand pixels; the cells of a very long text are smaller instead.
_LONGEST_SIDE = 40.0
_POINTS_PER_INCH = 72


def plot_attention(
    queries: Sequence[str], keys: Sequence[str], scores: np.ndarray, title: str = ""
) -> "Figure":
    """Draws attention probabilities: a row for each query, a column for each key.

    Source: Bahdanau et al. 2015, figure 3.

    Args:
        queries: the tokens that attend, T.
        keys: the tokens that are attended to, S.
        scores: (T, S), each row a distribution.
        title: title of the figure.

    Raises:
        ValueError: `scores` has another shape.
    """
    if np.shape(scores) != (len(queries), len(keys)):
        raise ValueError(
            f"`scores` must have the shape {(len(queries), len(keys))}, queries by keys. "
            f"Received: {np.shape(scores)}"
        )
    width = max(4.0, _INCHES_PER_TOKEN * len(keys) + 1.5)
    height = max(3.5, _INCHES_PER_TOKEN * len(queries) + 1.2)
    figure, axes = new_figure(width, height)
    image = axes.imshow(scores, cmap="viridis", vmin=0.0, aspect="auto", interpolation="nearest")
    queries, keys = readable(queries), readable(keys)
    axes.set_xticks(range(len(keys)), keys, rotation=90, **label_style(keys, 7))
    axes.set_yticks(range(len(queries)), queries, **label_style(queries, 7))
    axes.set_xlabel("attended to")
    axes.set_ylabel("attends")
    axes.set_title(title, fontsize=10)
    figure.colorbar(image, ax=axes, fraction=0.03, pad=0.01)
    return figure


def plot_alignment(
    source: Sequence[str], target: Sequence[str], weights: np.ndarray, title: str = ""
) -> "Figure":
    """Draws an alignment: a column for each source word, a row for each of the translation.

    The weights are shades of grey, from black for 0 to white for the largest one.

    Source: Bahdanau et al. 2015, figure 3.

    Args:
        source: the S source words.
        target: the T words of the translation.
        weights: (T, S), each row a distribution.
        title: title of the figure.

    Raises:
        ValueError: `weights` has another shape, or there is no target word.
    """
    if np.shape(weights) != (len(target), len(source)):
        raise ValueError(
            f"`weights` must have the shape {(len(target), len(source))}, target by source. "
            f"Received: {np.shape(weights)}"
        )
    if not len(target):
        raise ValueError("`target` must have a word. Received: none, as of an empty translation")
    source, target = readable(source), readable(target)
    cell = min(_INCHES_PER_WORD, _LONGEST_SIDE / max(len(source), len(target)))
    size = min(9.0, 0.6 * cell * _POINTS_PER_INCH)
    longest = [max(map(_ems, side)) * size / _POINTS_PER_INCH for side in (target, source)]
    width = max(cell * len(source) + longest[0] + 0.9, 0.07 * len(title) + 0.3)
    figure, axes = new_figure(width, cell * len(target) + longest[1] + (0.55 if title else 0.3))
    image = axes.imshow(
        weights, cmap="gray", vmin=0.0, vmax=np.max(weights), interpolation="nearest"
    )
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(source)), source, rotation=90, **label_style(source, size))
    axes.set_yticks(range(len(target)), target, **label_style(target, size))
    axes.tick_params(length=0)
    if title:
        figure.suptitle(title, fontsize=9, parse_math=False)
    bar = axes.inset_axes((1.0 + 0.1 / (cell * len(source)), 0.0, 0.12 / (cell * len(source)), 1.0))
    figure.colorbar(image, cax=bar, ticks=(0.0, np.max(weights)), format="%.2f")
    bar.tick_params(labelsize=7)
    return figure


def _ems(text: str) -> float:
    """Estimates the width of a text in units of its font size."""
    return sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.55 for c in text)


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
