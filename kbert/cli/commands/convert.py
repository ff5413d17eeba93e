"""`kbert convert` and `kbert push`: models for others."""

import re
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from kbert.cli.frame.command import shipped_names
from kbert.cli.frame.errors import reported
from kbert.cli.frame.results import write_result
from kbert.hints import nearest

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
FORMATS = ("huggingface", "kbert", "tf1", "ctranslate2", "sentence-transformers")


@reported
def convert(
    source: Annotated[
        str,
        Argument(
            help="A run, a checkpoint in any known format, or a name.",
            metavar="SRC",
            autocompletion=shipped_names,
        ),
    ],
    target: Annotated[Path, Argument(help="The folder to make.", metavar="DST")],
    format: Annotated[str, Option(help=f"What to write: {', '.join(FORMATS)}.")],
    overwrite: Annotated[bool, Option(help="Whether an old checkpoint may be replaced.")] = False,
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
    from kbert.cli.actions.model_kinds import check_format, check_model, local_path
    from kbert.training.runs.run_directory import is_run, load_run

    check_model(source, exports=False, argument="SRC")
    check_format(load_run(source).model_directory if is_run(source) else local_path(source), format)
    if target.exists() and not overwrite:
        raise FileExistsError(
            f"`DST` must not exist yet, unless --overwrite is given. Received: {target}"
        )
    _check_overwritten(Path(source), target)
    from kbert.cli.actions.conversion import convert_checkpoint

    write_result(convert_checkpoint(source, target, format, overwrite))


def _check_overwritten(source: Path, target: Path) -> None:
    """Raises a FileExistsError for what is no checkpoint, or holds the source or this folder."""
    from kbert.checkpoints.arrays.checkpoint_files import FORMAT_FILES
    from kbert.training.runs.run_directory import is_run, load_run

    if not target.exists():
        return
    known = (*FORMAT_FILES.values(), "bert_config.json", "modules.json")
    read = load_run(source).model_directory if is_run(source) else source
    inside = [one.resolve() for one in (source, read, Path.cwd()) if one.exists()]
    is_needed = any(one.is_relative_to(target.resolve()) for one in inside)
    is_other = not any((target / name).is_file() for name in known)
    is_other &= not target.is_dir() or any(target.iterdir())
    if is_needed or is_other or is_run(target):
        raise FileExistsError(
            "`DST` must be new, empty or an old checkpoint that does not hold `SRC`: nothing else "
            f"is overwritten. Received: {target}"
        )


@reported
def push(
    model: Annotated[Path, Argument(help="A run or a model's folder.", metavar="MODEL")],
    repository: Annotated[
        str, Argument(help="Its name on the Hugging Face hub, OWNER/NAME.", metavar="REPO")
    ],
    private: Annotated[bool, Option(help="Whether a new repository is private.")] = False,
    message: Annotated[str, Option(help="Message of the commit.")] = "Upload with kbert",
) -> None:
    """Upload a model to the Hugging Face hub, with a card.

    The folder's own README.md is the card; where there is none, one is
    written. It needs a token that may write: hf auth login, or the
    variable HF_TOKEN. The result on stdout is JSON.

    Example:

      kbert push runs/topics my-name/topics --private
    """
    if not _REPOSITORY.fullmatch(repository):
        raise ValueError(f"`REPO` must be OWNER/NAME. Received: {repository!r}")
    from kbert.cli.actions.model_kinds import check_model
    from kbert.training.runs.run_directory import is_run

    if not model.is_dir():
        raise FileNotFoundError(f"`MODEL` must be a run or a folder. Received: {str(model)!r}")
    if not is_run(model):
        check_model(model, exports=False, argument="MODEL")
    from kbert.cli.actions.publishing import push_model

    write_result(push_model(model, repository, private, message))
