"""Export of a model's network as ONNX, for ONNX Runtime and whatever else reads it."""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from kbert import __version__
from kbert.serving.portable.onnx_graph import OPSET, OnnxGraph, import_onnx
from kbert.serving.portable.onnx_networks import write_network
from kbert.serving.portable.portable_folder import (
    NetworkTensor,
    portable_folder,
    write_card,
    write_settings,
)

ONNX_FILE = "model.onnx"


def export_onnx(
    model: Any,
    base: str | os.PathLike[str],
    name: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> Path:
    """Writes BASE/<name>/, a folder with a model's network as `model.onnx`, which takes token ids.

    Inputs, outputs and files are those of Hugging Face's Optimum: `input_ids`, `attention_mask`
    and, where the encoder has segments, `token_type_ids`, int64 (B, T) of any size; float32
    `logits`, or `start_logits` and `end_logits`, or `sentence_embedding`. A choice of K has inputs
    (B, K, T). Beside it lie `config.json`, `tokenizer.json` and a card. The folder appears whole or
    not at all. Weights are float32, whatever those of the model are; an active LoRA adapter is
    merged into them, other adapters stay beside them.

    Args:
        model: a model of texts with an encoder of kbert's.
        base: the folder of all models.
        name: the model's name; the Keras model's name by default.
        about: facts about the training for the card; see `kbert.serving.export.base_files`.

    Returns:
        The folder.

    Raises:
        ImportError: the package onnx is not installed.
        ValueError: the name is wrong, or the model's task or encoder cannot be written.
        FileExistsError: the folder is there already.
    """
    import_onnx()
    graph = OnnxGraph()
    merged = getattr(getattr(model, "encoder", None), "merged_adapter", nullcontext)
    with merged():
        write_network(model, graph)
    name = model.name if name is None else name
    made = graph.model(name, {"class": type(model).__name__}, __version__)
    with portable_folder(base, name) as folder:
        (folder / ONNX_FILE).write_bytes(made.SerializeToString())
        write_settings(folder, model)
        inputs = [NetworkTensor(key, "int64", axes) for key, axes in graph.inputs.items()]
        outputs = [NetworkTensor(key, "float32", axes) for key, axes in graph.outputs.items()]
        runtime = f"`{ONNX_FILE}` is ONNX, opset {OPSET}: ONNX Runtime and others run it."
        write_card(folder, name, model, runtime, (inputs, outputs), about)
    return Path(base, name)
