"""Export of a run's network for other runtimes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbert.cli.actions.portable_formats import LITERT, ONNX
from kbert.serving.portable.litert_export import export_litert
from kbert.serving.portable.onnx_export import export_onnx
from kbert.training.runs.load_model import load_model

_WRITERS = {ONNX: export_onnx, LITERT: export_litert}


def export_portable(
    format: str, run: Path, target: Path, about: Mapping[str, Any] | None
) -> Path:
    """Writes the network of a run, or of a model's folder, as `target`; returns that.

    `format` is "onnx" or "litert"; `about` are facts about the training, for the card.
    """
    model = load_model(run)
    return _WRITERS[format](model, target.parent, target.name, about)
