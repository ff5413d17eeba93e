"""Static checks of an export, which read its files and run nothing."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensorflow.core.framework import types_pb2

from kbert.export_check.absolute_paths import path_problems
from kbert.export_check.report import Check
from kbert.serving.format.servable import (
    PYTHON_OPS,
    compilation_problems,
    device_problems,
    nodes_of,
    op_problems,
    ops_of,
    signature_problems,
)
from kbert.serving.format.server_versions import (
    ops_missing_in,
    server_number,
    server_number_or_zero,
)
from kbert.serving.format.signatures import signatures_of
from kbert.serving.format.version_folders import is_version
from kbert.serving.format.weights_on_disk import stored_twice

# Bytes of a graph with its vocabulary beside the weights; more means that it contains weights.
MOST_OTHER_BYTES = 6_000_000
_MOST_CONSTANT_BYTES = 1_000_000
_VARIABLES = ("VarHandleOp", "VariableV2", "VarIsInitializedOp")
_FLOATS = {
    types_pb2.DT_FLOAT: 4,
    types_pb2.DT_DOUBLE: 8,
    types_pb2.DT_BFLOAT16: 2,
    types_pb2.DT_HALF: 2,
    types_pb2.DT_INT8: 1,
}


def graph_checks(export_dir: Path, meta_graph: Any, server: str) -> Iterator[Check]:
    """Runs the static checks.

    Args:
        export_dir: The version folder.
        meta_graph: Its MetaGraphDef.
        server: The target version of TF Serving.
    """
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
    yield Check("size", tuple(_size_problems(graph, sizes_of(export_dir))))


def sizes_of(export_dir: str | os.PathLike[str]) -> dict[str, int]:
    """Returns the bytes of the weights, of the graph, and of all other files."""
    sizes = {"weights": 0, "graph": 0, "other": 0}
    for file in Path(export_dir).rglob("*"):
        if file.is_file():
            data = file.name.startswith("variables.data-")
            kind = "weights" if data else "graph" if file.name == "saved_model.pb" else "other"
            sizes[kind] += file.stat().st_size
    return sizes


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
