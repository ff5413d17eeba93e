"""Check of an export before deployment: whether a server can run it, with the right answers."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensorflow.core.framework import types_pb2

from kbert.export_check.bundle_checks import Replay, bundle_checks
from kbert.export_check.report import Check, CheckReport
from kbert.serving.export.base_files import CARD_FILE
from kbert.serving.format.servable import (
    PYTHON_OPS,
    SERVERS,
    compilation_problems,
    device_problems,
    least_server,
    nodes_of,
    op_problems,
    ops_missing_in,
    ops_of,
    server_number,
    server_number_or_zero,
    signature_problems,
    sizes_of,
)
from kbert.serving.format.signatures import read_meta_graph, signatures_of, stored_twice
from kbert.serving.format.version_folders import (
    METADATA_FILE,
    SAVED_MODEL_FILE,
    find_export,
    is_version,
    read_metadata,
)

# Bytes of a graph with its vocabulary beside the weights; more means that it contains weights. The
# requests and answers of assets.extra, megabytes where alignments are long, are no part of it.
MOST_OTHER_BYTES = 6_000_000
_MOST_CONSTANT_BYTES = 1_000_000
_VARIABLES = ("VarHandleOp", "VariableV2", "VarIsInitializedOp")
_FLOATS = (
    *(types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE, types_pb2.DT_BFLOAT16),
    *(types_pb2.DT_HALF, types_pb2.DT_INT8),
)
_ROOTS = (
    "home|root|Users|tmp|private|var|usr|opt|mnt|media|srv|etc|data|content|workspace|Volumes"
    "|scratch"
)
_BEGINS = re.compile(rf"(/({_ROOTS})/|[A-Za-z]:\\|(file|gs|s3|hdfs)://)")
_WITHIN = re.compile(rf"(?<![\w./:$-])/({_ROOTS})/[\w./-]+")
# A path, not a text that begins with a slash.
_PATH = re.compile(r"/[^/\0\s]+/[^\0\n]+")
_SHOWN = 120


def check(
    path: str | os.PathLike[str],
    server: str | None = None,
    run: bool = True,
    folder: str | os.PathLike[str] | None = None,
) -> CheckReport:
    """Runs all checks of an export; `path` is as for `find_export`.

    `server` is the target version of TF Serving, such as "2.20"; by default the version of the
    TensorFlow that wrote it. If `run`, it is run too, in Python and, if there is a C compiler,
    without Python; for `folder` see `build_session_loader`. Raises ValueError for a version that is
    older than the known ones.
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
    least = {"by_ops": least_server(ops_of(meta_graph.graph_def)), "promised": promised}
    facts = {"least_server": least, "bytes": sizes_of(export_dir)}
    return CheckReport(shown, server, tuple(checks), facts)


def graph_checks(export_dir: Path, meta_graph: Any, server: str) -> Iterator[Check]:
    """Runs the static checks of a version folder, for a version of TF Serving."""
    graph = meta_graph.graph_def
    ops = ops_of(graph)
    python_ops = ops & set(PYTHON_OPS)
    yield Check("files", tuple(_file_problems(export_dir, ops)))
    yield Check(
        "ops",
        (*op_problems(ops - python_ops), *_server_problems(ops, meta_graph, server)),
        note=f"{len(ops)} kinds, for TF Serving {server}",
    )
    yield Check("python", tuple(op_problems(python_ops)))
    yield Check("xla", tuple(compilation_problems(graph)))
    yield Check("paths", tuple(path_problems(meta_graph, export_dir)))
    yield Check("devices", tuple(device_problems(graph)))
    yield Check("batch_dimension", tuple(signature_problems(signatures_of(meta_graph))))
    yield _weights_check(export_dir)
    if _is_frozen(export_dir):
        yield Check("size", note="weights are constants, as --frozen makes them")
    else:
        yield Check("size", tuple(_size_problems(graph, sizes_of(export_dir))))


def _is_frozen(export_dir: Path) -> bool:
    try:
        return bool(read_metadata(export_dir).get("frozen"))
    except (OSError, ValueError):
        return False  # not kbert's, or damaged: another check tells


def _file_problems(export_dir: Path, ops: set[str]) -> Iterator[str]:
    if not is_version(export_dir.name):
        yield (
            "The folder's name must be a whole number below 2**63, or a server takes it for no "
            f"version: it is {export_dir.name!r}."
        )
    if ops & set(_VARIABLES):
        index = export_dir / "variables" / "variables.index"
        if not index.is_file():
            yield "The graph has variables, and variables/variables.index is missing."
        elif not list(index.parent.glob("variables.data-*")):
            yield "The graph has variables, and variables/variables.data-* is missing."


def _server_problems(ops: set[str], meta_graph: Any, server: str) -> Iterator[str]:
    for op, version in ops_missing_in(ops, server).items():
        yield f"The op {op} is linked from TF Serving {version} on; {server} lacks it."
    written = meta_graph.meta_info_def.tensorflow_version
    if written and server_number_or_zero(written) > server_number(server):
        yield (
            f"TensorFlow {written} wrote the export; TensorFlow does not promise that the older "
            f"{server} reads it."
        )


def _weights_check(export_dir: Path) -> Check:
    try:
        copies = stored_twice(export_dir)
    except ValueError as error:
        return Check("weights", (str(error),))
    told = (f"These weights are one array, stored {len(c)} times: {', '.join(c)}." for c in copies)
    return Check("weights", tuple(told))


def _size_problems(graph: Any, sizes: dict[str, int]) -> Iterator[str]:
    for where, node in nodes_of(graph):
        tensor = node.attr["value"].tensor if node.op == "Const" else None
        if tensor is None or tensor.dtype not in _FLOATS:
            continue
        if tensor.ByteSize() > _MOST_CONSTANT_BYTES:
            place = f"{where}: {node.name}" if where else node.name
            yield (
                f"{place} is a constant of {tensor.ByteSize():,} bytes: weights must be variables, "
                "or each signature holds its own."
            )
    other = sizes["graph"] + sizes["other"]
    if other > MOST_OTHER_BYTES:
        yield f"All but the weights takes {other:,} bytes, more than {MOST_OTHER_BYTES:,}."


def path_problems(meta_graph: Any, export_dir: str | os.PathLike[str]) -> Iterator[str]:
    """Finds absolute paths in the graph, its assets, and the metadata and the model card.

    On another machine they are broken, or reveal their origin. A string of the graph is taken for a
    path if it begins like one of some machine, or if it is an existing path on this machine.
    """
    folder = Path(export_dir)
    for asset in meta_graph.asset_file_def:
        name = asset.filename
        if os.path.isabs(name) or ".." in Path(name).parts:
            yield f"The asset {name!r} must lie in assets/, not elsewhere."
        elif not (folder / "assets" / name).is_file():
            yield f"The asset {name!r} is missing in assets/."
    told = set()
    for where, node in nodes_of(meta_graph.graph_def):
        for text in _strings(node):
            if text not in told and _is_path(text):
                told.add(text)
                place = f"{where}: {node.name}" if where else node.name
                yield f"{place} ({node.op}) holds the path {text[:_SHOWN]!r}."
    for file in (METADATA_FILE, CARD_FILE):
        for path in sorted(_paths_in(folder / file)):
            yield f"{file} holds the path {path[:_SHOWN]!r}."


def _strings(node: Any) -> Iterator[str]:
    for name, value in node.attr.items():
        if name.startswith("_") and name != "_output_shapes":
            continue  # internal attributes of TensorFlow, without files
        contents = [value.s, *value.list.s, *value.tensor.string_val]
        yield from (content.decode("utf-8", "replace") for content in contents if content)


def _is_path(text: str) -> bool:
    if _BEGINS.match(text):
        return True
    return bool(_PATH.fullmatch(text)) and len(text) < 4096 and os.path.exists(text)


def _paths_in(file: Path) -> set[str]:
    """Returns the absolute paths in a file: in any string of JSON, or in a text."""
    if not file.is_file():
        return set()
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.suffix != ".json":
        return {match[0] for match in _WITHIN.finditer(text)}
    try:
        return {leaf for leaf in _leaves(json.loads(text)) if _is_path(leaf)}
    except ValueError:
        return set()


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _leaves(child)
