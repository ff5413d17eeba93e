"""Check that TF Serving can load and run an export, from its files, without a server."""

import functools
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbert.serving.format.saved_graph import SavedSignature, read_saved_graph
from kbert.serving.format.server_versions import ICU_OPS, TEXT_OPS
from kbert.serving.format.version_folders import SAVED_MODEL_FILE, find_export

PYTHON_OPS = ("EagerPyFunc", "PyFunc", "PyFuncStateless")
_COMPILED_ATTRIBUTE = "_XlaMustCompile"
# Prefix of device names in a single process, such as a server.
_LOCAL_TASK = "/job:localhost/replica:0/task:0"
# TensorFlow puts its own saving and restoring on the CPU, on any machine.
_SAVER_FUNCTIONS = ("__inference__traced_save_", "__inference__traced_restore_")


@dataclass(frozen=True)
class ExportReport:
    """Report of `check_export`.

    Args:
        path: The version folder.
        signatures: Name -> signature.
        core_ops: The ops of TensorFlow itself that the graph and its functions use.
        text_ops: The ops of tensorflow-text that they use; the server must have these linked.
        tensorflow_version: The TensorFlow that wrote the export; the server's must not be older.
        variable_bytes: Size of the weights on disk.
        other_bytes: Size of everything else: graph, vocabulary, metadata.
        problems: Reasons why TF Serving cannot serve it, one sentence each; empty if there is none.
    """

    path: Path
    signatures: dict[str, SavedSignature]
    core_ops: tuple[str, ...]
    text_ops: tuple[str, ...]
    tensorflow_version: str
    variable_bytes: int
    other_bytes: int
    problems: tuple[str, ...]

    @property
    def is_servable(self) -> bool:
        """Returns whether no problem was found."""
        return not self.problems


def check_export(path: str | os.PathLike[str]) -> ExportReport:
    """Checks an export against what TF Serving needs; `path` is as for `find_export`.

    Every op must be TensorFlow's or tensorflow-text's and none may call Python or need ICU's data;
    no function may require XLA, no op a device; every tensor of a signature must have the batch as
    its first dimension. It only reads the files; to check that the graph runs, see
    `kbert.serving.loading.session_loader`. TensorFlow is not imported.

    Raises:
        FileNotFoundError: There is no export.
        ValueError: The file is not a SavedModel.
    """
    export_dir = find_export(path)
    saved = read_saved_graph(export_dir)
    ops = ops_of(saved.graph)
    sizes = sizes_of(export_dir)
    problems = [
        *op_problems(ops),
        *compilation_problems(saved.graph),
        *device_problems(saved.graph),
        *signature_problems(saved.signatures),
    ]
    return ExportReport(
        path=export_dir,
        signatures=saved.signatures,
        core_ops=tuple(sorted(ops & core_ops())),
        text_ops=tuple(sorted(ops & TEXT_OPS)),
        tensorflow_version=saved.tensorflow_version,
        variable_bytes=sizes["weights"],
        other_bytes=sizes["graph"] + sizes["other"],
        problems=tuple(problems),
    )


@functools.cache
def core_ops() -> frozenset[str]:
    """Returns the names of the installed TensorFlow's ops in `tf.raw_ops`, without importing it.

    Raises:
        ImportError: It is not installed.
    """
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        raise ImportError("Checking an export needs TensorFlow: pip install tensorflow")
    names = Path(spec.origin).parent / "_api" / "v2" / "raw_ops" / "__init__.py"
    imported = r"^from \S+ import (?:\w+ as )?(\w+)"
    return frozenset(re.findall(imported, names.read_text(encoding="utf-8"), re.MULTILINE))


def ops_of(graph: Any) -> set[str]:
    """Returns the ops that a GraphDef and its functions use."""
    ops = {node.op for _, node in nodes_of(graph)}
    return ops - {function.signature.name for function in graph.library.function}


def nodes_of(graph: Any) -> Iterator[tuple[str, Any]]:
    """Yields every node of the graph and of its functions, with the function's name, or ""."""
    yield from (("", node) for node in graph.node)
    for function in graph.library.function:
        yield from ((function.signature.name, node) for node in function.node_def)


def op_problems(ops: set[str]) -> Iterator[str]:
    """Finds ops that no server has, and ops that fail on a server without their data."""
    for op in sorted(ops):
        if op in PYTHON_OPS:
            yield f"The op {op} calls Python, which a server does not have."
        elif op in ICU_OPS:
            yield f"The op {op} reads ICU's data at run time, which a server may not have."
        elif op not in TEXT_OPS and op not in core_ops():
            yield f"The op {op} belongs neither to TensorFlow nor to tensorflow-text."


def compilation_problems(graph: Any) -> Iterator[str]:
    """Finds functions that need XLA, off in servers without --xla_cpu_compilation_enabled."""
    compiled = {where or node.name for where, node in nodes_of(graph) if _insists(node.attr)}
    compiled |= {f.signature.name for f in graph.library.function if _insists(f.attr)}
    for name in sorted(compiled):
        yield f"{name} has {_COMPILED_ATTRIBUTE} (jit_compile=True), and a server has XLA off."


def _insists(attributes: Any) -> bool:
    return _COMPILED_ATTRIBUTE in attributes and attributes[_COMPILED_ATTRIBUTE].b


def device_problems(graph: Any) -> Iterator[str]:
    """Finds ops that are pinned to a device."""
    pinned: dict[str, str] = {}
    for where, node in nodes_of(graph):
        device = node.device.removeprefix(_LOCAL_TASK)
        is_saver = not where or where.startswith(_SAVER_FUNCTIONS)
        if device and not (is_saver and device.startswith("/device:CPU:")):
            pinned.setdefault(node.device, where or node.name)
    for device, where in sorted(pinned.items()):
        yield f"{where} is pinned to {device}, which a server may not have."


def signature_problems(signatures: Mapping[str, Any]) -> Iterator[str]:
    """Finds tensors without a batch, which a server cannot join with those of other requests."""
    if not signatures:
        yield "There is no signature to call."
    for name, signature in signatures.items():
        for kind, tensors in (("input", signature.inputs), ("output", signature.outputs)):
            for key, tensor in tensors.items():
                if not tensor.shape or tensor.shape[0] is not None:
                    yield (
                        f"The {kind} {key!r} of the signature {name!r} must have a first dimension "
                        f"that is the batch and may vary. It has the shape {tensor.shape}."
                    )


def sizes_of(export_dir: str | os.PathLike[str]) -> dict[str, int]:
    """Returns the bytes of the weights, of the graph, and of all other files."""
    sizes = {"weights": 0, "graph": 0, "other": 0}
    for file in Path(export_dir).rglob("*"):
        if file.is_file():
            data = file.name.startswith("variables.data-")
            kind = "weights" if data else "graph" if file.name == SAVED_MODEL_FILE else "other"
            sizes[kind] += file.stat().st_size
    return sizes
