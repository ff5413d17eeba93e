"""Absolute paths in an export: on another machine they are broken, or reveal their origin."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbert.serving.bundle.model_card import CARD_FILE
from kbert.serving.format.metadata import METADATA_FILE
from kbert.serving.format.servable import nodes_of

_ROOTS = (
    "home|root|Users|tmp|private|var|usr|opt|mnt|media|srv|etc|data|content|workspace|Volumes"
    "|scratch"
)
_BEGINS = re.compile(rf"(/({_ROOTS})/|[A-Za-z]:\\|(file|gs|s3|hdfs)://)")
_WITHIN = re.compile(rf"(?<![\w./:$-])/({_ROOTS})/[\w./-]+")
# A path, not a text that begins with a slash.
_PATH = re.compile(r"/[^/\0\s]+/[^\0\n]+")
_SHOWN = 120


def path_problems(meta_graph: Any, export_dir: str | os.PathLike[str]) -> Iterator[str]:
    """Finds absolute paths in the graph, its assets, and the metadata and the model card.

    A string of the graph is taken for a path if it begins like a path of some machine, or if it is
    an existing path on this machine.

    Args:
        meta_graph: The MetaGraphDef.
        export_dir: The version folder.

    Yields:
        One sentence for each.
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
