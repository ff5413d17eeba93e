"""Export of a model's network as ONNX, for ONNX Runtime and whatever else reads it."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbert import __version__
from kbert.serving.portable.onnx_graph import OPSET, OnnxGraph
from kbert.serving.portable.onnx_networks import networks
from kbert.serving.portable.portable_folder import (
    TEXTS,
    NetworkTensor,
    Tensors,
    portable_folder,
    write_card,
    write_settings,
)
from kbert.serving.portable.translator_settings import TEXTS as TRANSLATOR_TEXTS
from kbert.serving.portable.translator_settings import write_translator_settings
from kbert.tasks.translation.head import Translation

# Names of tensors of a layer but the first.
_LATER = re.compile(r"\.[1-9]\d*\.").search


def export_onnx(
    model: Any,
    base: str | os.PathLike[str],
    name: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> Path:
    """Writes BASE/<name>/, a folder with a model's network as `model.onnx`, which takes token ids.

    A translator has three networks: `encoder_model.onnx`, `decoder_model.onnx` and
    `decoder_with_past_model.onnx`, see `kbert.serving.portable.onnx_transformers`.

    Inputs, outputs and files are those of Hugging Face's Optimum: `input_ids`, `attention_mask`
    and, where the encoder has segments, `token_type_ids`, int64 (B, T) of any size; float32
    `logits`, or `start_logits` and `end_logits`, or `sentence_embedding`. A choice of K has inputs
    (B, K, T). Beside it lie `config.json`, `tokenizer.json` and a card. The folder appears whole or
    not at all. Weights are float32, whatever those of the model are; an active LoRA adapter is
    merged into them, other adapters stay beside them.

    Args:
        model: a model of texts with an encoder of kbert's, or a `Translator` with a Transformer.
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
    graphs = {f"{stem}.onnx": graph for stem, graph in networks(model).items()}
    name = model.name if name is None else name
    about_it = {"class": type(model).__name__}
    is_translator = isinstance(model, Translation)
    write = write_translator_settings if is_translator else write_settings
    with portable_folder(base, name) as folder:
        for file, graph in graphs.items():
            made = graph.model(name, about_it, __version__)
            (folder / file).write_bytes(made.SerializeToString())
        write(folder, model)
        files = ", ".join(f"`{file}`" for file in graphs)
        runtime = f"{files}: ONNX, opset {OPSET}, which ONNX Runtime and others run."
        notes = [runtime, TRANSLATOR_TEXTS if is_translator else TEXTS]
        tensors = {file: _tensors(graph) for file, graph in graphs.items()}
        write_card(folder, name, model, tensors, notes, about)
    return Path(base, name)


def _tensors(graph: OnnxGraph) -> Tensors:
    """Returns inputs and outputs for the card; of those that each layer i has, one alone."""
    given = [NetworkTensor(key, *one) for key, one in graph.inputs.items()]
    made = [NetworkTensor(key, "float32", axes) for key, axes in graph.outputs.items()]
    return _of_one_layer(given), _of_one_layer(made)


def _of_one_layer(tensors: list[NetworkTensor]) -> list[NetworkTensor]:
    first = [one for one in tensors if not _LATER(one.name)]
    return [one._replace(name=one.name.replace(".0.", ".i.")) for one in first]
