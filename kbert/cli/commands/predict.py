"""`kbert predict`."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Argument, Option, echo

from kbert.cli.frame.command import shipped_names
from kbert.cli.frame.errors import reported
from kbert.cli.frame.results import write_line, write_result

Row = tuple[str, ...]
_Task = Annotated[str | None, Option(help="The task, of an export that has several.")]
_Show = Annotated[
    bool,
    Option(
        "--show", help="Mark answers, entities or words for [MASK] in the text, instead of JSON."
    ),
]
_Nbest = Annotated[
    int | None,
    Option(min=1, help="How many translations, captions, or words for each [MASK], best first."),
]
_Model = Annotated[
    Path,
    Argument(
        help="A run, a model's folder, an export, or a name such as minilm-squad.",
        metavar="RUN_OR_EXPORT",
        autocompletion=shipped_names,
    ),
]
_Images = Annotated[
    list[Path] | None, Argument(help="Image files, for a captioner.", metavar="[IMAGE]...")
]
_Text = Annotated[list[str] | None, Option(help="A text to answer; may be given several times.")]
_TextA = Annotated[
    str | None,
    Option(help="The first text of a pair; with --input, the column of the (first) text."),
]
_TextB = Annotated[str | None, Option(help="The second text of a pair; with --input, its column.")]
_Question = Annotated[list[str] | None, Option(help="A question; may be given several times.")]
_ContextFile = Annotated[Path | None, Option(help="The file with the text that answers it, UTF-8.")]
_Input = Annotated[
    Path | None,
    Option(
        "--input",
        help="A file of any size: .jsonl, .tsv, .csv (also .gz) or .parquet. A run reads the "
        "columns that it was trained with; an export or a saved model those named as its inputs, "
        "such as text; --text-a and --text-b name others.",
    ),
]
_Output = Annotated[
    Path | None,
    Option(help="The file to make of them, with the answers; its end tells its format."),
]
_Part = Annotated[
    str | None,
    Option(
        help="Which part of the input, as 3/8, for several machines: in a row, their outputs are "
        "those of the whole."
    ),
]
_BatchSize = Annotated[
    int | None,
    Option(min=1, help="Lines of stdin that are read and answered at a time, by default 256."),
]


@reported
def predict(
    model: _Model,
    images: _Images = None,
    text: _Text = None,
    text_a: _TextA = None,
    text_b: _TextB = None,
    question: _Question = None,
    context: Annotated[str | None, Option(help="The text that answers it.")] = None,
    context_file: _ContextFile = None,
    show: _Show = False,
    nbest: _Nbest = None,
    task: _Task = None,
    source: _Input = None,
    output: _Output = None,
    part: _Part = None,
    batch_size: _BatchSize = None,
) -> None:
    """Answer, fill or translate texts, or caption images: one JSON object a line, in order.

    Texts come from --text, or one a line from stdin, of any number.
    Images are files, as arguments or one name a line from stdin.
    For a model of pairs, a tab stands between the two, also between
    question and context; for multiple choice, between the context and each
    choice. A line may also be a JSON object with the names of the texts.

    Examples:

      kbert predict runs/topics --text "Where is my parcel?"

      kbert predict runs/topics < questions.txt > answers.jsonl

      kbert predict runs/en-de --text "A man reads." --nbest 3

      kbert predict runs/captions photo.jpg another.png

      kbert predict exports/topics --input mails.jsonl --output answers.parquet

      kbert predict exports/topics --input mails.jsonl --output 3.jsonl --part 3/8

      kbert predict bert-base-uncased --text "Paris is the [MASK] of France."

      kbert predict runs/squad --question "Who wrote it?" \\
          --context-file article.txt --show
    """
    from kbert.cli.actions import model_kinds

    model_kinds.check_model(model)
    model_kinds.check_task_of_export(model, task)
    if any(one is not None for one in (source, output, part)):
        others = any((show, batch_size, images, text, question, context, context_file))
        return _answer_file(model, source, output, part, others, nbest, task, (text_a, text_b))
    came = _came(question, context, context_file, text, text_a, text_b)
    rows = _of_one_kind(_asked(question, context, context_file), _given(text, text_a, text_b), came)
    if rows is not None and (inputs := model_kinds.inputs_of(model, task)):
        model_kinds.check_texts(inputs, rows, came)
    rows = _files(images, rows) if images else rows
    _check_of_stdin(rows, batch_size, came or "IMAGE")
    from kbert.cli.actions.answering import open_model

    _write_answers(open_model(model, nbest, task), rows, came, batch_size or 256, show)


def _answer_file(
    model: Path,
    source: Path | None,
    output: Path | None,
    part: str | None,
    has_others: bool,
    nbest: int | None,
    task: str | None,
    columns: tuple[str | None, str | None],
) -> None:
    """Answers the rows of a file, or of a part of it."""
    if source is None or output is None:
        missing, other = ("input", "output") if source is None else ("output", "input")
        raise ValueError(f"`--{missing}` must be given where `--{other}` or `--part` is.")
    if has_others:
        told = "without texts, --show and --batch-size (--text-a and --text-b name its columns)."
        raise ValueError(f"`--input` must be given {told}")
    one_of = _part(part)
    from kbert.serving.batch_prediction.file_prediction import check_files

    check_files(source, output)
    from kbert.cli.actions.model_kinds import check_columns_to_read, inputs_of

    inputs = inputs_of(model, task)
    if inputs is not None:
        check_columns_to_read(model, source, inputs, columns)
    from kbert.cli.actions.answering import answer_file

    write_result(answer_file(model, source, output, nbest, task, columns, one_of))


def _part(text: str | None) -> tuple[int, int]:
    """Returns the index of a part, from 1, and the number of parts."""
    if text is None:
        return 1, 1
    index, _, parts = text.partition("/")
    if not (index.isdecimal() and parts.isdecimal() and 1 <= int(index) <= int(parts)):
        raise ValueError(
            f"`--part` must be I/N with I from 1 to N, such as 3/8. Received: {text!r}"
        )
    return int(index), int(parts)


def _write_answers(
    answering: Any, rows: list[Row] | None, options: str, batch_size: int, show: bool
) -> None:
    """Writes the answers to rows, of options or else of images, or to the lines of stdin."""
    from kbert.cli.actions.answering import encodable, read_batches
    from kbert.tasks.registry import show_answer

    if rows is not None:
        if answering.reads_images != (not options):
            raise ValueError(
                "`IMAGE` must be given for a captioner, and for no other model. "
                f"Received: {options or ', '.join(rows[0])}"
            )
        answering.check(rows, options)
        batches: Iterable[list[Row]] = [list(map(encodable, rows)) if options else rows]
    else:
        if sys.stdin is None:
            raise ValueError("`--text` or `--input` must be given where stdin is closed.")
        if sys.stdin.isatty():
            echo(_waiting(answering), err=True)
        batches = read_batches(sys.stdin.buffer, answering.split, batch_size)
    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    batch = None
    for batch in batches:
        for row, answer in zip(batch, answering.answers(batch)):
            if show:
                show_answer(row, answer, console)
            else:
                write_line(answer)
        sys.stdout.flush()
    if batch is None and not sys.stdin.isatty():
        kind, option = ("image", "IMAGE") if answering.reads_images else ("text", "--text")
        echo(f"No {kind} came from stdin; {option} or --input gives some.", err=True)


def _waiting(answering: Any) -> str:
    """Returns the line that tells people at a terminal what is read from it."""
    kind = "names of image files" if answering.reads_images else "texts"
    names = " and ".join(answering.inputs)
    tabs = f", with a tab between {names}" if len(answering.inputs) > 1 else ""
    return f"Reading {kind}, one a line{tabs}; Ctrl-D ends them."


def _files(images: list[Path], rows: list[Row] | None) -> list[Row]:
    """Returns the rows of image files."""
    from kbert.training.run import check_file

    if rows is not None:
        raise ValueError("`IMAGE` must not be given together with texts.")
    for image in images:
        try:
            check_file("IMAGE", image)
        except FileNotFoundError as error:
            end = "" if str(error).endswith("?") else "."
            raise FileNotFoundError(f"{error}{end} Texts go into --text.") from error
    return [(str(image),) for image in images]


def _asked(questions: list[str] | None, context: str | None, file: Path | None) -> list[Row] | None:
    """Returns the rows of questions in the options, or None without questions."""
    if not questions and context is None and file is None:
        return None
    if not questions or (context is None) == (file is None):
        raise ValueError(
            "`--question` must be given together with either `--context` or `--context-file`."
        )
    if file is not None:
        from kbert.data.tables.columns import read_text
        from kbert.training.run import check_file

        check_file("--context-file", file)
        context = read_text(file)
    return [(question, context or "") for question in questions]


def _check_of_stdin(rows: list[Row] | None, batch_size: int | None, came: str) -> None:
    if rows is not None and batch_size is not None:
        raise ValueError(f"`--batch-size` must be given for lines of stdin only. Received: {came}")


def _of_one_kind(
    asked: list[Row] | None, given: list[Row] | None, came: str
) -> list[Row] | None:
    if asked and given:
        raise ValueError(
            f"`--question` or `--text` must be given, and not both. Received: {came}"
        )
    return asked or given


def _came(*values: Any) -> str:
    """Returns the names of the options that gave the texts of rows, of their values in order."""
    names = ("--question", "--context", "--context-file", "--text", "--text-a", "--text-b")
    found = (name for name, value in zip(names, values, strict=True) if value not in (None, []))
    return " with ".join(f"`{name}`" for name in found)


def _given(text: list[str] | None, text_a: str | None, text_b: str | None) -> list[Row] | None:
    """Returns the rows in the options, or None if the rows come from stdin."""
    if text and (text_a is not None or text_b is not None):
        raise ValueError("`--text` must not be given together with `--text-a` and `--text-b`.")
    if (text_a is None) != (text_b is None):
        received = "--text-a" if text_b is None else "--text-b"
        raise ValueError(f"`--text-a` and `--text-b` must be given together. Received: {received}")
    if text_a is not None and text_b is not None:
        return [(text_a, text_b)]
    return [(one,) for one in text] if text else None
