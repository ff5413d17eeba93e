"""The model card of an export: assets.extra/README.md, for recipients of the folder alone."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbert.tasks.registry import all_tasks

CARD_FILE = Path("assets.extra", "README.md")
# Class -> what it does.
_DOES = {task.model_name: task.does for task in all_tasks()} | {
    "Together": "does several tasks with one encoder, each by a signature of its name",
}
_WINDOWED = [task.model_name for task in all_tasks() if task.has_windows]
_MOST_LABELS = 50
_INT8 = (
    " The large weights are stored as int8, each row or column with a scale, and made floats in "
    "the graph at each request: the export is small, not fast."
)


def write_card(
    export_dir: str | os.PathLike[str], metadata: Mapping[str, Any], about: Mapping[str, Any] | None
) -> None:
    """Writes the card of a version folder.

    Args:
        export_dir: The folder.
        metadata: The contents of kbert.json.
        about: Facts about the training: "data", a list of dicts with `part`, `examples` and
            `source`; "metrics", part -> name -> number; "precisions", with `source`, `examples`,
            `processor` and `of`: precision -> `weight_bytes`, `rows_per_second` and `metrics`, name
            -> number. None if unknown.
    """
    file = Path(export_dir) / CARD_FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(model_card(metadata, about), encoding="utf-8")


def model_card(metadata: Mapping[str, Any], about: Mapping[str, Any] | None) -> str:
    """Returns the card as Markdown; for `metadata` and `about` see `write_card`."""
    kind = metadata["class"]
    does = f": it {_DOES[kind]}" if kind in _DOES else ""
    lines = [
        f"# {metadata['name']}, version {metadata['version']}",
        "",
        f"{'An' if kind[0] in 'AEIOU' else 'A'} {kind} of kbert {metadata['kbert_version']}{does}. "
        "Texts go in as they are; tokenization is part of the graph.",
        "",
        *_signatures(metadata["signatures"]),
        "",
        *_sizes(metadata),
        *_limits(metadata),
        *_precisions((about or {}).get("precisions") or {}),
        "",
        *_tasks(metadata.get("tasks") or {}),
        *_training(about or {}),
        "",
        "## Files",
        "",
        "- `assets.extra/kbert.json`: class, labels, signatures, sizes and versions, for programs.",
        "- `assets.extra/golden_answers.json`: requests with the answers that the model gave in "
        "Python; `kbert check` tells whether the export still gives them.",
        "- `assets.extra/tf_serving_warmup_requests`: what a server runs when it loads the model.",
    ]
    if metadata["batching"]:
        lines.append("- `batching_params.pbtxt`: how a server joins requests into batches.")
    return "\n".join(lines) + "\n"


def _signatures(signatures: Mapping[str, Any]) -> list[str]:
    lines = ["## Signatures", "", "| signature | inputs | outputs |", "| --- | --- | --- |"]
    for name, one in signatures.items():
        inputs, outputs = (", ".join(map(_tensor, one[key])) for key in ("inputs", "outputs"))
        lines.append(f"| `{name}` | {inputs} | {outputs} |")
    return lines


def _tensor(tensor: Mapping[str, Any]) -> str:
    shape = ", ".join("any" if size is None else str(size) for size in tensor["shape"][1:])
    return f"`{tensor['name']}` {tensor['dtype']} ({f'B, {shape}' if shape else 'B'})"


def _sizes(metadata: Mapping[str, Any]) -> list[str]:
    weights = metadata["weights"]
    kinds = ", ".join(f"{count:,} {dtype}" for dtype, count in weights["dtypes"].items())
    return [
        "## Size and precision",
        "",
        f"- {weights['parameters']:,} numbers as weights ({kinds or 'none'}), "
        f"{weights['bytes']:,} bytes; the graph, with its vocabulary, has "
        f"{metadata['graph_bytes']:,} bytes.",
        f"- It computes in {metadata['compute_dtype']}."
        + (_INT8 if metadata.get("precision") == "int8" else ""),
        f"- Written with TensorFlow {metadata['tensorflow_version']} and Keras "
        f"{metadata['keras_version']}. By its ops, the oldest server that can run it is TensorFlow "
        f"Serving {metadata['least_server']}; TensorFlow promises it from "
        f"{'.'.join(metadata['tensorflow_version'].split('.')[:2])} on.",
    ]


def _limits(metadata: Mapping[str, Any]) -> list[str]:
    lines = []
    longest = metadata.get("max_sequence_length")
    if longest and metadata["class"] in _WINDOWED:
        lines.append(f"- Long texts are read in windows of at most {longest} tokens.")
    elif longest:
        lines.append(
            f"- It reads {longest} tokens of a text; where there are more, `truncated` is true."
        )
    labels = metadata.get("labels") or []
    if labels:
        shown = ", ".join(f"`{label}`" for label in labels[:_MOST_LABELS])
        more = f" and {len(labels) - _MOST_LABELS} more" if len(labels) > _MOST_LABELS else ""
        lines.append(f"- Its {len(labels)} labels: {shown}{more}.")
    if metadata["batching"]:
        most = metadata["batching"]["max_batch_size"]
        lines.append(f"- With batching on, a server takes at most {most} rows a request.")
    else:
        lines.append("- Requests to it are not joined into batches by a server.")
    return lines


def _precisions(measured: Mapping[str, Any]) -> list[str]:
    """Returns a table with a row for each precision that was measured on one file."""
    if not measured:
        return []
    rows = [
        f"| {one} | {facts['weight_bytes']:,} | {name} | {value:.6g} | "
        f"{facts['rows_per_second']:.3g} |"
        for one, facts in measured["of"].items()
        for name, value in facts["metrics"].items()
    ]
    return [
        "",
        f"Measured in Python on {measured['examples']:,} examples of {measured['source']}, "
        f"on {measured['processor']}:",
        "",
        "| precision | bytes of weights | measure | value | rows a second |",
        "| --- | --- | --- | --- | --- |",
        *rows,
    ]


def _tasks(tasks: Mapping[str, Any]) -> list[str]:
    """Returns a table of the tasks, where there are several."""
    if not tasks:
        return []
    lines = ["## Tasks", "", "| signature | model | labels |", "| --- | --- | --- |"]
    for name, one in tasks.items():
        labels = ", ".join(f"`{label}`" for label in (one.get("labels") or [])[:_MOST_LABELS])
        does = _DOES.get(one["class"], "")
        lines.append(f"| `{name}` | {one['class']}{f': {does}' if does else ''} | {labels} |")
    return [*lines, ""]


def _training(about: Mapping[str, Any]) -> list[str]:
    lines = ["## Training"]
    if not (about.get("data") or about.get("metrics")):
        return [*lines, "", "What it was trained on is not known to the program that exported it."]
    if about.get("data"):
        lines += ["", "| part | examples | file |", "| --- | --- | --- |"]
        lines += [f"| {d['part']} | {d['examples']:,} | {d['source']} |" for d in about["data"]]
    if about.get("metrics"):
        lines += ["", "| part | measure | value |", "| --- | --- | --- |"]
        for part, values in about["metrics"].items():
            lines += [f"| {part} | {name} | {value:.6g} |" for name, value in values.items()]
        lines += ["", "Measured in Python, before the export."]
    return lines
