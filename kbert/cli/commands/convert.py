"""`kbert convert`."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from kbert.cli.commands.verb import reported, write_result
from kbert.data.tables.table import nearest

FORMATS = ("huggingface", "kbert", "tf1", "ctranslate2", "sentence-transformers")


@reported
def convert(
    source: Annotated[
        str, Argument(help="A run, a checkpoint in any known format, or a name.", metavar="SRC")
    ],
    target: Annotated[Path, Argument(help="The folder to make.", metavar="DST")],
    format: Annotated[str, Option(help=f"What to write: {', '.join(FORMATS)}.")],
    overwrite: Annotated[bool, Option(help="Whether an existing folder may be replaced.")] = False,
) -> None:
    """Turn a checkpoint into another format, and compare.

    Encoders become huggingface, kbert or tf1; translators, kbert's own
    and Marian's, become kbert or ctranslate2; models that embed texts
    become sentence-transformers.
    Heads and vocabulary travel too. The written checkpoint is read
    again and both are run on the same input; the result on stdout is
    JSON with the largest absolute differences.

    Examples:

      kbert convert bert-base-uncased bert-kbert --format kbert

      kbert convert runs/topics topics-hf --format huggingface

      kbert convert uncased_L-12/bert_model.ckpt bert-hf --format huggingface

      kbert convert runs/en-de en-de-ct2 --format ctranslate2

      kbert convert runs/vectors vectors-st --format sentence-transformers
    """
    if format not in FORMATS:
        near = nearest(format, FORMATS)
        raise ValueError(
            f"`--format` must be one of {', '.join(FORMATS)}. Received: {format!r}.{near}"
        )
    from kbert.cli.actions.model_kinds import check_format, check_model
    from kbert.training.runs.run_directory import is_run, load_run

    check_model(source, exports=False)
    check_format(load_run(source).model_directory if is_run(source) else source, format)
    if target.exists() and not overwrite:
        raise FileExistsError(
            f"`DST` must not exist yet, unless --overwrite is given. Received: {target}"
        )
    from kbert.cli.actions.conversion import convert_checkpoint

    write_result(convert_checkpoint(source, target, format, overwrite))
