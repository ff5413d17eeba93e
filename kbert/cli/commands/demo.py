"""`kbert demo`."""

from pathlib import Path
from typing import Annotated

from typer import Option

from kbert.cli.frame.errors import reported
from kbert.training.runs.run_directory import tell_stage


@reported
def demo(
    output: Annotated[
        Path, Option(help="Folder for the demo's run and export; its old run is replaced.")
    ] = Path("runs/demo"),
) -> None:
    """The whole way in about four minutes: train, measure, export, ask.

    A small classifier learns to sort messages to a shop's support by
    topic, with the encoder all-MiniLM-L6-v2 and the sample messages
    that come with kbert. Where both are installed, no network is needed.
    Then a toy translator learns a little German from sample sentences,
    and a toy captioner learns to say what is in drawn pictures.

    Example:

      kbert demo --output runs/demo
    """
    if (output / "metrics.json").is_file():
        raise FileExistsError(
            f"`--output` must be a folder of the demo's own. Received: {output}, which is a run"
        )
    drawn = output / "shapes"
    if drawn.exists() and not (drawn / "captions.csv").is_file():
        raise FileExistsError(
            f"`--output` must be a folder of the demo's own. Received: {output}, whose folder "
            f"{drawn.name} would be replaced"
        )
    tell_stage("loading TensorFlow")
    from kbert.cli.actions.demo import run_demo

    run_demo(output)
