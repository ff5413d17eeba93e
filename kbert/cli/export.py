"""`kbert export`."""

import json
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from kbert.cli.errors import reported
from kbert.cli.json_output import write_result


@reported
def export(
    run: Annotated[Path, typer.Argument(help="A run, or a model's folder.", metavar="RUN")],
    base: Annotated[Path, typer.Argument(help="The folder of all exports.", metavar="BASE")],
    name: Annotated[Optional[str], typer.Option(help="The model's name for the server.")] = None,
    version: Annotated[
        Optional[int], typer.Option(help="Its version; by default the next free one.")
    ] = None,
    max_batch_size: Annotated[
        int, typer.Option(help="The most rows of a batch of the server's; 0 for no batching.")
    ] = 32,
    keep: Annotated[
        Optional[int], typer.Option(help="How many of the newest versions stay; by default all.")
    ] = None,
) -> None:
    """Write a SavedModel that answers raw strings.

    TensorFlow Serving and `kbert predict` take it. It becomes
    BASE/NAME/VERSION, checked before it appears there, with what a server needs
    besides; BASE/README.md tells how to start one. The result on stdout is JSON.

    Example:

      kbert export runs/topics exports --name topics
    """
    from kbert.serving.saved_model import export as write_export
    from kbert.serving.signatures import read_meta_graph, signatures_of
    from kbert.training.averaging import load_model

    path = write_export(
        load_model(run),
        base,
        name=name,
        version=version,
        max_batch_size=max_batch_size,
        keep=keep,
        about=_about(run),
    )
    signatures = signatures_of(read_meta_graph(path))
    write_result(
        {
            "export": str(path),
            "signatures": {
                key: {
                    "inputs": {k: tensor.as_json() for k, tensor in signature.inputs.items()},
                    "outputs": {k: tensor.as_json() for k, tensor in signature.outputs.items()},
                }
                for key, signature in signatures.items()
            },
        }
    )


def _about(run: Path) -> dict[str, Any] | None:
    """What the card of an export says of the training: files by their names, without folders."""
    from kbert.training.run_directory import REPORT, is_run, load_run

    if not is_run(run):
        return None
    report = json.loads((run / REPORT).read_text(encoding="utf-8"))
    metrics = load_run(run).metrics.get("final") or {}
    return {
        "data": [
            {
                "part": part,
                "examples": one["count"],
                "source": ", ".join(Path(name).name for name in str(one["source"]).split(", ")),
            }
            for part, one in (report.get("examples") or {}).items()
        ],
        "metrics": {
            part: {name: value for name, value in values.items() if isinstance(value, int | float)}
            for part, values in metrics.items()
            if isinstance(values, dict)
        },
    }
