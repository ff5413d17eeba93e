"""`kbert export`."""

from pathlib import Path
from typing import Annotated, Optional

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
) -> None:
    """Write a SavedModel that answers raw strings.

    TensorFlow Serving and `kbert predict` take it. It becomes
    BASE/NAME/VERSION, checked before it appears there.
    The result on stdout is JSON.

    Example:

      kbert export runs/topics exports --name topics
    """
    from kbert.serving.saved_model import export as write_export
    from kbert.serving.signatures import read_meta_graph, signatures_of
    from kbert.training.averaging import load_model

    path = write_export(load_model(run), base, name=name, version=version)
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
