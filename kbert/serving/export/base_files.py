"""Files for people and servers: the card of an export, and what lies beside all of a folder.

`model.config`, `monitoring.config` and `README.md` are rewritten with each export. One that does
not begin with kbert's mark was written or changed by somebody else, and stays as it is. The model
card, assets.extra/README.md, is for recipients of an export alone.
"""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kbert.serving.export.example_calls import call_in_process, example_calls
from kbert.serving.format.version_folders import (
    MODEL_CONFIG,
    MONITORING_CONFIG,
    README,
    complete_versions,
    exports_in,
)
from kbert.storage.files import write_atomically
from kbert.tasks.registry import all_tasks

logger = logging.getLogger(__name__)
METRICS_PATH = "/monitoring/prometheus/metrics"
_MARK = "Written by kbert export, anew with each export. Remove this line to keep your changes."
_IMAGE = "tensorflow/serving:2.20.0"
_MONITORING = f'prometheus_config {{\n  enable: true\n  path: "{METRICS_PATH}"\n}}\n'
_FLAGS = "--model_config_file_poll_wait_seconds=30"
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
_INTEGERS = (
    " The large weights are stored as int8, each row or column with a scale. The dense layers of "
    "the encoder multiply integers, by an op of oneDNN that TensorFlow has on x86 only; the other "
    "weights are made floats in the graph."
)


def write_card(
    export_dir: str | os.PathLike[str], metadata: Mapping[str, Any], about: Mapping[str, Any] | None
) -> None:
    """Writes the card of a version folder; `metadata` is the contents of kbert.json.

    `about` has facts about the training, where known: "data", a list of dicts with `part`,
    `examples` and `source`; "metrics", part -> name -> number; "precisions", with `source`,
    `examples`, `processor` and `of`: precision -> `weight_bytes`, `rows_per_second` and `metrics`,
    name -> number.
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
        + _goes_in(metadata["signatures"]),
        "",
        *_signatures(metadata["signatures"]),
        "",
        *_sizes(metadata),
        *_limits(metadata),
        *_precisions((about or {}).get("precisions") or {}),
        "",
        *_tasks(metadata.get("tasks") or {}),
        *training_lines(about or {}),
        "",
        "## Files",
        "",
        "- `assets.extra/kbert.json`: class, labels, signatures, sizes and versions, for programs.",
        "- `assets.extra/golden_answers.json`: requests with the answers that the model gave in "
        "Python; `kbert check` tells whether the export still gives them.",
        "- `assets.extra/tf_serving_warmup_requests`: what a server runs when it loads the model.",
    ]
    return "\n".join(lines) + "\n"


def _goes_in(signatures: Mapping[str, Any]) -> str:
    inputs = {tensor["name"] for one in signatures.values() for tensor in one["inputs"]}
    if inputs == {"image"}:
        return "Images go in as the bytes of their files; decoding is part of the graph."
    return "Texts go in as they are; tokenization is part of the graph."


def _signatures(signatures: Mapping[str, Any]) -> list[str]:
    rows = []
    for name, one in signatures.items():
        inputs, outputs = (", ".join(map(_tensor, one[key])) for key in ("inputs", "outputs"))
        rows.append((f"`{name}`", inputs, outputs))
    return ["## Signatures", *table(("signature", "inputs", "outputs"), rows)]


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Returns the lines of a table in Markdown, with an empty one before it."""
    lines = [f"| {' | '.join(map(str, row))} |" for row in (head, ["---"] * len(head), *rows)]
    return ["", *lines]


def _tensor(tensor: Mapping[str, Any]) -> str:
    shape = ", ".join("any" if size is None else str(size) for size in tensor["shape"][1:])
    return f"`{tensor['name']}` {tensor['dtype']} ({f'B, {shape}' if shape else 'B'})"


def _sizes(metadata: Mapping[str, Any]) -> list[str]:
    weights = metadata["weights"]
    kinds = ", ".join(f"{count:,} {dtype}" for dtype, count in weights["dtypes"].items())
    frozen = " and constant weights" if metadata.get("frozen") else ""
    return [
        "## Size and precision",
        "",
        f"- {weights['parameters']:,} numbers as weights ({kinds or 'none'}), "
        f"{weights['bytes']:,} bytes; the graph, with its vocabulary{frozen}, has "
        f"{metadata['graph_bytes']:,} bytes.",
        f"- It computes in {metadata['compute_dtype']}."
        + (
            ""
            if metadata.get("precision") != "int8"
            else _INTEGERS if metadata.get("integer_products") else _INT8
        ),
        "- TensorFlow loads it in Python, without kbert, where tensorflow_text is imported first.",
        f"- Written with TensorFlow {metadata['tensorflow_version']} and Keras "
        f"{metadata['keras_version']}. By its ops, the oldest server that can run it is TensorFlow "
        f"Serving {metadata['least_server']}; TensorFlow promises it from "
        f"{'.'.join(metadata['tensorflow_version'].split('.')[:2])} on.",
    ]


def _limits(metadata: Mapping[str, Any]) -> list[str]:
    lines = []
    if metadata.get("shortlist"):
        lines.append("- A translation has only pieces that its shortlist allows for the source.")
    longest = metadata.get("max_sequence_length")
    if longest and metadata["class"] in _WINDOWED:
        lines.append(f"- Long texts are read in windows of at most {longest} tokens.")
    elif longest:
        lines.append(
            f"- It reads {longest} tokens of a text; where there are more, `truncated` is true."
        )
    labels = metadata.get("labels") or []
    if labels:
        bounds = metadata.get("thresholds") or {}
        starts = {label: f" from {bound:.3g} on" for label, bound in bounds.items()}
        shown = ", ".join(f"`{label}`{starts.get(label, '')}" for label in labels[:_MOST_LABELS])
        more = f" and {len(labels) - _MOST_LABELS} more" if len(labels) > _MOST_LABELS else ""
        lines.append(f"- Its {len(labels)} labels: {shown}{more}.")
    if metadata["batching"]:
        most = metadata["batching"]["max_batch_size"]
        lines.append(
            f"- Its graph checks each request, and joins those that meet to batches of {most} rows."
        )
    else:
        lines.append("- Its graph checks each request, and does not join them into batches.")
    return lines


def _precisions(measured: Mapping[str, Any]) -> list[str]:
    """Returns a table with a row for each precision that was measured on one file."""
    if not measured:
        return []
    rows = [
        (one, f"{facts['weight_bytes']:,}", name, f"{value:.6g}", f"{facts['rows_per_second']:.3g}")
        for one, facts in measured["of"].items()
        for name, value in facts["metrics"].items()
    ]
    return [
        "",
        f"Measured in Python on {measured['examples']:,} examples of {measured['source']}, "
        f"on {measured['processor']}:",
        *table(("precision", "bytes of weights", "measure", "value", "rows a second"), rows),
    ]


def _tasks(tasks: Mapping[str, Any]) -> list[str]:
    if not tasks:
        return []
    rows = []
    for name, one in tasks.items():
        labels = ", ".join(f"`{label}`" for label in (one.get("labels") or [])[:_MOST_LABELS])
        does = f": {_DOES[one['class']]}" if one["class"] in _DOES else ""
        rows.append((f"`{name}`", f"{one['class']}{does}", labels))
    return ["## Tasks", *table(("signature", "model", "labels"), rows), ""]


def training_lines(about: Mapping[str, Any]) -> list[str]:
    """Returns the lines of a card on the training; for `about` see `write_card`."""
    lines = ["## Training"]
    if not (about.get("data") or about.get("metrics")):
        return [*lines, "", "What it was trained on is not known to the program that exported it."]
    if about.get("data"):
        files = [(one["part"], f"{one['examples']:,}", one["source"]) for one in about["data"]]
        lines += table(("part", "examples", "file"), files)
    if metrics := about.get("metrics"):
        values = [(k, name, f"{v:.6g}") for k, part in metrics.items() for name, v in part.items()]
        lines += [*table(("part", "measure", "value"), values), ""]
        lines.append("Measured in Python, before the export.")
    return lines


def write_base_files(base: str | os.PathLike[str]) -> None:
    """Writes the files for all models of a folder."""
    complete = {folder.name: complete_versions(folder) for folder in exports_in(base)}
    found = {name: paths[max(paths)] for name, paths in complete.items() if paths}
    _write(Path(base, MODEL_CONFIG), f"# {_MARK}", model_config(list(found)))
    _write(Path(base, MONITORING_CONFIG), f"# {_MARK}", _MONITORING)
    _write(Path(base, README), f"<!-- {_MARK} -->", _readme(found))


def model_config(names: list[str]) -> str:
    """Returns the message ModelServerConfig, as text, for these models below /models."""
    places = [f'    name: "{name}"\n    base_path: "/models/{name}"' for name in names]
    models = [f'  config {{\n{one}\n    model_platform: "tensorflow"\n  }}\n' for one in places]
    return f"model_config_list {{\n{''.join(models)}}}\n"


def _write(file: Path, mark: str, text: str) -> None:
    if file.is_file():
        present = file.read_text(encoding="utf-8", errors="replace")
        if not present.startswith(mark):
            logger.warning("%s is not kbert's own, and stays as it is.", file)
            return
        if present == f"{mark}\n{text}":
            return  # a server that polls the file need not read it again
    write_atomically(file, f"{mark}\n{text}")


def _readme(models: dict[str, Path]) -> str:
    lines = [
        "# Models for TensorFlow Serving",
        "",
        *(f"- `{k}`: [card]({k}/{v.name}/{CARD_FILE.as_posix()})" for k, v in models.items()),
        "",
        "A server takes the highest version of each model, looks for new ones every second, and",
        f"reads `{MODEL_CONFIG}` again every 30 seconds. Run these lines in this folder.",
        "",
        "```",
        'docker run --rm -p 8500:8500 -p 8501:8501 -v "$PWD:/models:ro" \\',
        f"  {_IMAGE} \\",
        f"  --model_config_file=/models/{MODEL_CONFIG} \\",
        f"  --monitoring_config_file=/models/{MONITORING_CONFIG} \\",
        f"  {_FLAGS}",
        "```",
        "",
        f"Without Docker; the paths in `{MODEL_CONFIG}` must be absolute, and become those of this",
        "folder:",
        "",
        "```",
        f'sed "s#/models/#$PWD/#" {MODEL_CONFIG} > /tmp/{MODEL_CONFIG}',
        "tensorflow_model_server --port=8500 --rest_api_port=8501 \\",
        f"  --model_config_file=/tmp/{MODEL_CONFIG} \\",
        f'  --monitoring_config_file="$PWD/{MONITORING_CONFIG}" \\',
        f"  {_FLAGS}",
        "```",
        "",
        f"Metrics: `curl -s http://localhost:8501{METRICS_PATH}`. Neither port asks who is",
        "calling: keep both behind something that does.",
        "",
        "In Python alone, with TensorFlow and tensorflow-text, kept for as long as it is asked:",
        "",
        *next(filter(None, (call_in_process(*one) for one in models.items())), []),
    ]
    for name, path in models.items():
        url = f"http://localhost:8501/v1/models/{name}"
        lines += ["", f"## {name}", "", "```", f"curl -s {url}", f"curl -s {url}/metadata", "```"]
        lines += example_calls(name, path, url)
    return "\n".join(lines) + "\n"
