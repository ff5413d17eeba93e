"""`kbert check`."""

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from kbert.cli.commands.verb import FAILURE, reported, write_result
from kbert.training.runs.run_log import tell_stage


@reported
def check(
    export: Annotated[
        Path, typer.Argument(help="BASE/NAME, or BASE/NAME/VERSION.", metavar="EXPORT")
    ],
    server: Annotated[
        Optional[str],
        typer.Option(help="The server's version; by default that of the exporting TensorFlow."),
    ] = None,
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Run its requests too, or read the files alone.")
    ] = True,
    strict: Annotated[
        bool, typer.Option("--strict", help="A check that cannot be made counts as failed.")
    ] = False,
) -> None:
    """Tell whether TensorFlow Serving can run an export.

    Its files are read, its warm-up and golden requests are run in Python and, where
    gcc is there, by TensorFlow's C++ loader, and the answers are compared.
    The result on stdout is JSON, the list on stderr is for people.
    The exit code is 1 if something is wrong.

    Examples:

      kbert check exports/topics

      kbert check exports/topics/3 --server 2.19 --strict
    """
    from kbert.serving.format.server_versions import server_number
    from kbert.serving.format.version_folders import find_export

    find_export(export)
    if server is not None:
        server_number(server)
    tell_stage("loading TensorFlow")
    from kbert.export_check.check import check as check_export

    tell_stage("checking: the requests of the export are run")
    report = check_export(export, server, run)
    write_result(report.as_json(strict))
    for line in report.lines():
        sys.stderr.write(f"{line}\n")
    passed = report.passed(strict)
    sys.stderr.write(f"{export}: {'passed' if passed else 'FAILED'}\n")
    if not passed:
        raise typer.Exit(FAILURE)
