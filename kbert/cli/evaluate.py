"""`kbert evaluate`."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from kbert.cli.errors import reported
from kbert.cli.json_output import write_result
from kbert.cli.label_table import show_labels
from kbert.training.config_checks import READING_TASKS


@reported
def evaluate(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="One run (or more with --average), then the file.", metavar="RUN... FILE"
        ),
    ],
    glue: Annotated[
        Optional[str], typer.Option(help="Measure on this GLUE task instead of a file.")
    ] = None,
    data: Annotated[Optional[Path], typer.Option(help="Folder of GLUE.")] = None,
    split: Annotated[str, typer.Option(help="Split of the GLUE task.")] = "dev",
    submission: Annotated[
        Optional[Path],
        typer.Option(help="Folder for the file that the GLUE server takes; with --split test."),
    ] = None,
    average: Annotated[
        bool, typer.Option(help="Take the mean of the runs' predictions.")
    ] = False,
    text_a: Annotated[Optional[str], typer.Option(help="Column of the text.")] = None,
    text_b: Annotated[Optional[str], typer.Option(help="Column of the second text.")] = None,
    label: Annotated[Optional[str], typer.Option(help="Column of the label.")] = None,
    predictions: Annotated[
        Optional[Path],
        typer.Option(help="Of question answering: write the official predictions file there."),
    ] = None,
) -> None:
    """Measure a trained model on labelled examples.

    The metrics are those of its task, the official ones where there
    are such. The result on stdout is JSON.
    Columns are by default those that the run was trained with.

    Examples:

      kbert evaluate runs/topics test.tsv

      kbert evaluate runs/sst2 --glue sst2 --data glue/ --split dev

      kbert evaluate runs/sst2 --glue sst2 --data glue/ --split test \\
          --submission upload/

      kbert evaluate runs/rte/seed-1 runs/rte/seed-2 dev.tsv --average

      kbert evaluate runs/squad dev-v2.0.json --predictions answers.json
    """
    runs, file = _divided(paths, glue, data, average)
    from kbert.cli.evaluation_data import evaluate_runs, read_examples, task_of
    from kbert.cli.reading_results import evaluate_reading

    if file is not None and task_of(runs[0]) in READING_TASKS:
        write_result(evaluate_reading(runs, file, label, predictions))
        return
    if predictions is not None:
        raise ValueError("`--predictions` must be given for a run of question answering only.")
    given = {"text_a": text_a, "text_b": text_b, "label": label}
    examples, task = read_examples(runs[0], file, (glue, data, split), given)
    result = evaluate_runs(runs, examples, task, split, submission)
    show_labels(result.get("metrics", {}))
    write_result(result)


def _divided(
    paths: list[Path], glue: str | None, data: Path | None, average: bool
) -> tuple[list[Path], Path | None]:
    """The runs and the file among the arguments."""
    file = None if glue is not None else paths[-1]
    runs = paths if glue is not None else paths[:-1]
    if not runs:
        raise ValueError(
            f"`kbert evaluate` must have a run and then a file (or --glue). Received: {paths[0]}"
        )
    if glue is not None and data is None:
        raise ValueError("`--data` must be the folder of GLUE with `--glue`. Received: none")
    if len(runs) > 1 and not average:
        raise ValueError(
            f"`--average` must be given for several runs. Received: {', '.join(map(str, runs))}"
        )
    return runs, file
