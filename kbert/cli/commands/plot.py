"""`kbert plot`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from kbert.cli.commands.plot_options import PICTURES, Picture, check_options, picture_named
from kbert.cli.frame.command import RunArgument, completion
from kbert.cli.frame.errors import reported
from kbert.cli.frame.results import write_result

_Picture = Annotated[
    str | None,
    Option(
        metavar=f"<{'|'.join(PICTURES)}>",
        autocompletion=completion(lambda: PICTURES),
        help="Start and end along the text, a heat map of the encoder's attention, what a "
        "translation comes from, where the words of a caption were looked for, which adapters of "
        "a fusion each layer listens to, or the curves of the training; by default the alignment "
        "of translators, the caption of --image, the fusion over --input, else attention."
    ),
]
_Layer = Annotated[
    int | None,
    Option(
        help="Layer of the attention, from 1; -1 is the last, as by default; 0 is the mean of "
        "all layers of an alignment."
    ),
]

_Input = Annotated[
    Path | None,
    Option(
        "--input",
        help="Of a fusion: a file as `kbert evaluate` takes it, whose texts are averaged over.",
    ),
]


@reported
def plot(
    model: RunArgument,
    output: Annotated[Path, Option(help="The picture: a .png, .svg or .pdf file.")],
    picture: _Picture = None,
    text: Annotated[str | None, Option(help="The text, for a model of one.")] = None,
    image: Annotated[Path | None, Option(help="The image, for a captioner.")] = None,
    question: Annotated[str | None, Option(help="The question.")] = None,
    context: Annotated[str | None, Option(help="The text that answers it.")] = None,
    source: _Input = None,
    layer: _Layer = None,
    head: Annotated[
        int | None, Option(help="Head of the attention, from 1; by default their mean.")
    ] = None,
    metrics: Annotated[
        str | None, Option(help="Names of metrics of a curve, with a comma between.")
    ] = None,
    pieces: Annotated[
        bool, Option("--pieces", help="Pieces of words in an alignment, not whole words.")
    ] = False,
) -> None:
    """Draw where an answer lies, what tokens attend to, or how a training went.

    Examples:

      kbert plot runs/squad --picture span --output span.png \\
          --question "Who wrote it?" --context "Ann wrote the book."

      kbert plot runs/topics --text "Where is my parcel?" --layer 2 \\
          --output attention.png

      kbert plot runs/en-de --text "A man reads a book." --output alignment.png

      kbert plot runs/captions --image photo.jpg --output caption.png

      kbert plot runs/rte --picture fusion --input dev.tsv --output fusion.png

      kbert plot runs/topics --picture curve --output curve.svg
    """
    from kbert.plots.figures import check_ending, write_figure

    check_ending(output, "output")
    given: dict[str, Any] = {"--image": image, "--input": source}
    given |= {"--layer": layer, "--head": head, "--pieces": pieces, "--metrics": metrics}
    given |= {"--text": text, "--question": question, "--context": context}
    chosen = picture_named(picture)
    if chosen is None:
        chosen = Picture.caption if image else Picture.fusion if source else None
    check_options(chosen, given)
    figure = _curve(model, metrics) if chosen is Picture.curve else _of(model, chosen, given)
    write_result({"picture": str(write_figure(figure, output))})


def _of(directory: Path, picture: Picture | None, given: Mapping[str, Any]) -> Any:
    """Draws a picture of a model."""
    from kbert.cli.actions.model_kinds import check_model

    check_model(directory, exports=False)
    image, source = given["--image"], given["--input"]
    names = ("--text", "--question", "--context")
    texts = [] if image else _texts(source, *(given[name] for name in names))
    from kbert.training.runs.load_model import load_model

    model = load_model(directory)
    if image is not None:
        return _caption(model, image)
    if picture is Picture.fusion:
        return _fusion(directory, model, texts, source)
    return _of_texts(model, picture, texts, given)


def _curve(directory: Path, metrics: str | None) -> Any:
    from kbert.plots.pictures import plot_curves, usual_metrics
    from kbert.training.callbacks.epoch_record import losses
    from kbert.training.runs.run_directory import load_run

    found, known = load_run(directory).metrics, losses()
    records = found.get("epochs") or found.get("intervals") or []
    if not records:
        raise ValueError(
            f"`--picture curve` must be given for the run of one training. Received: {directory}, "
            "which has no epochs"
        )
    usual = usual_metrics(records, found.get("monitor"), known)
    names = usual if metrics is None else [name.strip() for name in metrics.split(",")]
    if not found.get("epochs"):
        return plot_curves(records, names, "step", losses=known)
    kept = [number for number in (found.get("kept_epoch"),) if number]
    return plot_curves(records, names, "epoch", found.get("averaged_epochs") or kept, known)


def _texts(source: Path | None, *texts: str | None) -> list[str]:
    """Returns a text, or a question and its context; none instead of the texts of a file."""
    given = [text for text in texts if text is not None]
    if given in ([texts[0]], list(texts[1:])) if source is None else not given:
        return given
    raise ValueError(
        "`--text`, or `--question` and `--context`, or `--image` must be given, or `--input` for a "
        "fusion."
    )


# Number of texts of a picture, and the model that has it; every encoder has attention.
_WANTED = {
    Picture.span: (2, "a model that answers questions, with --question and --context"),
    Picture.alignment: (1, "a translator, with --text"),
    Picture.caption: (0, "a captioner, with --image"),
}


def _of_texts(
    model: Any, picture: Picture | None, texts: list[str], given: Mapping[str, Any]
) -> Any:
    from kbert.plots.pictures import plot_span
    from kbert.tasks.registry import task_of
    from kbert.tasks.task import Task

    task = task_of(model) or Task()
    if picture is None:
        picture = Picture(task.pictures[0])
        if picture is Picture.caption:
            came = "--text" if len(texts) == 1 else "--question with --context"
            raise ValueError(f"`--image` must be given for a captioner. Received: {came}")
    if picture in _WANTED:
        count, wanted = _WANTED[picture]
        if picture not in task.pictures or len(texts) != count:
            raise ValueError(
                f"`--picture {picture.value}` must be given for {wanted}. "
                f"Received: {type(model).__name__}"
            )
    check_options(picture, given)
    layer, head = given["--layer"], given["--head"]
    if picture is Picture.span:
        found = model.boundaries(*texts)
        return plot_span(found.tokens, found.start, found.end, found.span, texts[0])
    if picture is Picture.alignment:
        return _alignment(model, texts[0], layer, head, given["--pieces"])
    return _attention(*task.attention(model, texts), layer, head)


def _caption(model: Any, image: Path) -> Any:
    from kbert.plots.caption_maps import plot_caption
    from kbert.tasks.captioning.attention_maps import word_maps
    from kbert.tasks.registry import task_of
    from kbert.tasks.task import Task

    if Picture.caption.value not in (task_of(model) or Task()).pictures:
        kind = type(model).__name__
        raise ValueError(f"`--image` must be given for a captioner. Received: {kind}")
    found = word_maps(model, image)
    if not found.words:
        raise ValueError(f"`--image` must have a caption. Received: {image}, whose is empty")
    return plot_caption(found.pixels, found.words, found.maps, found.caption)


def _fusion(directory: Path, model: Any, texts: list[str], source: Path | None) -> Any:
    from kbert.plots.adapter_weights import plot_adapter_weights
    from kbert.tasks.adapter_fusion import fused_encoder, weights_of_examples, weights_of_texts

    if fused_encoder(model) is None:
        raise ValueError(
            "`--picture fusion` must be given for a model with an active fusion of adapters, as "
            f"`kbert train --fuse` makes it. Received: {type(model).__name__} without"
        )
    if source is None:
        found = weights_of_texts(model, texts)
    else:
        found = weights_of_examples(model, _examples(directory, model, source))
    plural = "" if found.examples == 1 else "s"
    about = f"{found.examples:,} example{plural}, {found.tokens:,} tokens"
    title = f"mean weight of each adapter\n{about}"
    return plot_adapter_weights(found.adapters, found.weights, title)


def _examples(directory: Path, model: Any, source: Path) -> Any:
    """Reads the examples of a file as `kbert evaluate` does, by the columns of the run."""
    from kbert.cli.actions.model_kinds import columns_of
    from kbert.tasks.registry import task_of

    task: Any = task_of(model)
    if task is None or not task.is_finetuned:
        raise ValueError(
            "`--input` must be given for a model of `kbert train`; others take --text. "
            f"Received: {type(model).__name__}"
        )
    names = ("text_a", "text_b", "label", *task.reading)
    columns = columns_of(directory, dict.fromkeys(names))
    return task.measured_examples(source, columns, model)


def _attention(tokens: Any, scores: Any, layer: int | None, head: int | None) -> Any:
    from kbert.plots.pictures import plot_attention

    if not scores:
        raise ValueError(
            "`--picture attention` must be given for a model with attention. Received: one without"
        )
    number = _layer(-1 if layer is None else layer, len(scores))
    chosen = scores[number]  # (N, T, T)
    _check_head(head, len(chosen))
    matrix = chosen.mean(axis=0) if head is None else chosen[head - 1]
    title = _title("attention", number, len(scores), head, len(chosen))
    return plot_attention(tokens, tokens, matrix, title)


def _alignment(model: Any, text: str, layer: int | None, head: int | None, pieces: bool) -> Any:
    from kbert.plots.pictures import plot_alignment
    from kbert.tasks.translation.alignment import alignment_of_text, check_attends

    check_attends(model)
    layers, heads = model.transformer.num_decoder_layers, model.transformer.num_heads
    number = _layer(layer, layers) if layer else None
    _check_head(head, heads)
    found = alignment_of_text(model, text)
    number = found.layer if layer is None else number
    if not found.target:
        raise ValueError("`--text` must have something to translate. Received: an empty text")
    shown = found if pieces else found.in_words()
    matrix = shown.mean(number, None if head is None else head - 1)
    title = _title("alignment", number, layers, head, heads)
    return plot_alignment(shown.source, shown.target, matrix, title)


def _layer(layer: int, count: int) -> int:
    number = layer - 1 if layer > 0 else count + layer
    if not 0 <= number < count:
        raise ValueError(f"`--layer` must be in 1 to {count}. Received: {layer}")
    return number


def _check_head(head: int | None, count: int) -> None:
    if head is not None and not 1 <= head <= count:
        raise ValueError(f"`--head` must be in 1 to {count}. Received: {head}")


def _title(picture: str, number: int | None, layers: int, head: int | None, heads: int) -> str:
    """Returns what a picture shows; an only layer or head needs no word."""
    layer = "mean of the layers" if number is None else f"layer {number + 1}"
    of_heads = "mean of the heads" if head is None else f"head {head}"
    return ", ".join([picture, *[layer] * (layers > 1), *[of_heads] * (heads > 1)])
