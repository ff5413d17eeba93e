"""Check of an export before deployment: whether a server can run it, with the right answers."""

import os
from pathlib import Path

from kbert.export_check.bundle_checks import Replay, bundle_checks
from kbert.export_check.graph_checks import graph_checks
from kbert.export_check.report import Check, CheckReport
from kbert.serving.format.servable import ops_of, sizes_of
from kbert.serving.format.server_versions import (
    SERVERS,
    least_server,
    server_number,
    server_number_or_zero,
)
from kbert.serving.format.signatures import read_meta_graph, signatures_of
from kbert.serving.format.version_folders import SAVED_MODEL_FILE, find_export


def check(
    path: str | os.PathLike[str],
    server: str | None = None,
    run: bool = True,
    folder: str | os.PathLike[str] | None = None,
) -> CheckReport:
    """Runs all checks of an export.

    Args:
        path: BASE/<model>/<version>, or BASE/<model> for its highest version.
        server: The target version of TF Serving, such as "2.20"; by default the version of the
            TensorFlow that wrote it.
        run: Whether to run it too, in Python and, if there is a C compiler, without Python.
        folder: Folder of the program that runs it without Python, see
            `kbert.serving.loading.session_loader.build_session_loader`.

    Returns:
        The report.

    Raises:
        FileNotFoundError: There is no export.
        ValueError: `server` is not a version, or older than the known ones.
    """
    shown = find_export(path)
    export_dir = Path(os.path.abspath(shown))
    if server is not None:
        server_number(server)
    try:
        meta_graph = read_meta_graph(export_dir)
        signatures = signatures_of(meta_graph)
    except (ValueError, TypeError) as error:  # TypeError: a dtype that TensorFlow does not know
        problem = f"{SAVED_MODEL_FILE} cannot be read: {error}"
        return CheckReport(shown, server or SERVERS[-1], (Check("files", (problem,)),))
    written = meta_graph.meta_info_def.tensorflow_version
    promised = ".".join(written.split(".")[:2]) if written else SERVERS[-1]
    server = server or max(promised, SERVERS[0], key=server_number_or_zero)
    checks = list(graph_checks(export_dir, meta_graph, server))
    bundle = bundle_checks(export_dir, signatures, written)
    checks += bundle.checks
    if run:
        checks += Replay(export_dir, folder).checks(bundle)
    facts = {
        "least_server": {
            "by_ops": least_server(ops_of(meta_graph.graph_def)),
            "promised": promised,
        },
        "bytes": sizes_of(export_dir),
    }
    return CheckReport(shown, server, tuple(checks), facts)
