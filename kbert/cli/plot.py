"""`kbert plot`."""

from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from kbert.cli.errors import reported
from kbert.cli.json_output import write_result


class Picture(str, Enum):
    """What is drawn."""

    span = "span"
    attention = "attention"


@reported
def plot(
    model: Annotated[Path, typer.Argument(help="A run or a model's folder.", metavar="RUN")],
    output: Annotated[Path, typer.Option(help="The picture: a .png, .svg or .pdf file.")],
    picture: Annotated[
        Picture, typer.Option(help="Start and end along the text, or a heat map of attention.")
    ] = Picture.attention,
    text: Annotated[Optional[str], typer.Option(help="The text, for a model of one.")] = None,
    question: Annotated[Optional[str], typer.Option(help="The question.")] = None,
    context: Annotated[Optional[str], typer.Option(help="The text that answers it.")] = None,
    layer: Annotated[
        int, typer.Option(help="Layer of the attention, from 1; -1 is the last.")
    ] = -1,
    head: Annotated[
        Optional[int], typer.Option(help="Head of the attention, from 1; by default their mean.")
    ] = None,
) -> None:
    """Draw where an answer begins and ends, or what tokens attend to.

    Examples:

      kbert plot runs/squad --picture span --output span.png \\
          --question "Who wrote it?" --context "Ann wrote the book."

      kbert plot runs/topics --text "Where is my parcel?" --layer 2 \\
          --output attention.png
    """
    from kbert.training.averaging import load_model

    loaded = load_model(model)
    texts = _texts(text, question, context)
    if picture is Picture.span:
        figure = _span(loaded, texts)
    else:
        figure = _attention(loaded, texts, layer, head)
    from kbert.plots.figures import write_figure

    write_result({"picture": str(write_figure(figure, output))})


def _texts(text: str | None, question: str | None, context: str | None) -> list[str]:
    if text is not None and question is None and context is None:
        return [text]
    if text is None and question is not None and context is not None:
        return [question, context]
    raise ValueError("`--text`, or `--question` and `--context`, must be given.")


def _span(model: Any, texts: list[str]) -> Any:
    from kbert.plots.spans import plot_span

    if not hasattr(model, "boundaries") or len(texts) != 2:
        raise ValueError(
            "`--picture span` must be given for a model that answers questions, with --question "
            f"and --context. Received: {type(model).__name__}"
        )
    found = model.boundaries(*texts)
    return plot_span(found.tokens, found.start, found.end, found.span, texts[0])


def _attention(model: Any, texts: list[str], layer: int, head: int | None) -> Any:
    from kbert.pipelines.attention_of_text import attention_of_text
    from kbert.plots.attention import plot_attention

    tokens, scores = attention_of_text(model, texts)
    number = layer - 1 if layer > 0 else len(scores) + layer
    if not 0 <= number < len(scores):
        raise ValueError(f"`--layer` must be in 1 to {len(scores)}. Received: {layer}")
    chosen = scores[number]  # (N, T, T)
    if head is not None and not 1 <= head <= len(chosen):
        raise ValueError(f"`--head` must be in 1 to {len(chosen)}. Received: {head}")
    matrix = chosen.mean(axis=0) if head is None else chosen[head - 1]
    which = "mean of the heads" if head is None else f"head {head}"
    return plot_attention(tokens, tokens, matrix, f"attention, layer {number + 1}, {which}")
