"""Folders of sentence-transformers: an encoder of Hugging Face, and `modules.json` beside it.

Source: sentence-transformers 2.0 to 6.2, `modules.json`, `N_Pooling/config.json`,
`N_Dense/config.json` with `model.safetensors`, `sentence_bert_config.json`.
"""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.checkpoint_files import open_safetensors, write_safetensors
from kbert.checkpoints.huggingface_files import MODULES, WEIGHTS, write_huggingface
from kbert.pipelines.saved_pipeline import pipeline_checkpoint
from kbert.storage.files import MODEL_FILES, atomic_directory
from kbert.storage.json_files import json_text, read_json_object

_TYPE = "sentence_transformers.models."
_PROMPTS = "config_sentence_transformers.json"
# The order of modules; the first two must be there.
_ORDER = ("Transformer", "Pooling", "Dense", "Normalize")
_LENGTHS = {
    "sentence_bert_config.json": "max_seq_length",
    "tokenizer_config.json": "model_max_length",
}
# Both ways in which pooling is written: a flag for each kind, or the name of one.
_FLAGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
}
_ACTIVATIONS = {
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.activation.GELU": "gelu",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.SiLU": "silu",
    "torch.nn.modules.linear.Identity": None,
}


def with_modules(checkpoint: Checkpoint, name: str) -> Checkpoint:
    """Returns a checkpoint as that of a saved text model, of the class `name`.

    One without modules, or of a saved text model, stays as it is.

    Raises:
        ValueError: there are modules that kbert does not have; the message names the file.
    """
    path = checkpoint.modules_path
    if path is None or checkpoint.pipeline or checkpoint.heads:
        return checkpoint
    folders = _folders_of(path)
    settings: dict[str, Any] = {
        "class": name,
        "max_sequence_length": _length(path.parent, checkpoint.config["max_sequence_length"]),
        "pooling": _pooling(folders["Pooling"] / "config.json"),
        "normalize": "Normalize" in folders,
    }
    heads: dict[str, np.ndarray] = {}
    if "Dense" in folders:
        more, heads = _dense(folders["Dense"])
        settings |= more
    _check_prompt(path.parent / _PROMPTS)
    return dataclasses.replace(checkpoint, pipeline=settings, heads=heads)


def write_modules(
    model: Any,
    directory: str | os.PathLike[str],
    overwrite: bool = False,
    source: Path | None = None,
) -> Path:
    """Writes a `TextEmbedder` as a folder that `SentenceTransformer` reads; returns it.

    Prompts by name and the function of similarity, which kbert does not use, are those of the
    folder `source`, if it has them; otherwise none, and the cosine.

    Raises:
        ValueError: its encoder has adapters, or is none of Hugging Face's.
        FileExistsError: the folder exists and `overwrite` is False.
    """
    checkpoint = pipeline_checkpoint(model)
    checkpoint.check_format("sentence-transformers")
    heads, checkpoint.heads = checkpoint.heads, {}
    with atomic_directory(directory, overwrite, MODEL_FILES) as folder:
        write_huggingface(checkpoint, folder, overwrite=True)
        length = {"max_seq_length": model.max_sequence_length, "do_lower_case": False}
        _write(folder / "sentence_bert_config.json", length)
        settings = read_json_object(folder / "tokenizer_config.json")
        settings["model_max_length"] = model.max_sequence_length
        _write(folder / "tokenizer_config.json", settings)
        about = {"__version__": {}, "prompts": {}, "similarity_fn_name": "cosine"}
        if source is not None and (source / _PROMPTS).is_file():
            about = read_json_object(source / _PROMPTS)
        _write(folder / _PROMPTS, about)
        names = ["Transformer", "Pooling"]
        names += ["Dense"] * bool(heads) + ["Normalize"] * model.normalize
        paths = ["", *(f"{number}_{name}" for number, name in enumerate(names) if number)]
        modules = [
            {"idx": number, "name": str(number), "path": path, "type": f"{_TYPE}{name}"}
            for number, (name, path) in enumerate(zip(names, paths))
        ]
        (folder / MODULES).write_text(json.dumps(modules, indent=2) + "\n", encoding="utf-8")
        for path in paths[1:]:
            (folder / path).mkdir()
        pooling = {flag: kind == model.pooling for flag, kind in _FLAGS.items()}
        width = {"word_embedding_dimension": model.encoder.hidden_dim}
        _write(folder / paths[1] / "config.json", width | pooling)
        if heads:
            _write_dense(folder / paths[2], model, heads)
    return Path(directory)


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json_text(value), encoding="utf-8")


def _write_dense(folder: Path, model: Any, heads: dict[str, np.ndarray]) -> None:
    named = {activation: name for name, activation in _ACTIVATIONS.items()}
    if model.dense_activation not in named:
        raise ValueError(
            f"`dense_activation` must be one of {list(named)} for sentence-transformers. "
            f"Received: dense_activation={model.dense_activation!r}"
        )
    about = {
        "in_features": model.encoder.hidden_dim,
        "out_features": model.dense,
        "bias": True,
        "activation_function": named[model.dense_activation],
    }
    _write(folder / "config.json", about)
    tensors = {f"linear.{part}": heads[f"dense.{part}"] for part in ("weight", "bias")}
    write_safetensors(folder / WEIGHTS, tensors, format="pt")


def _folders_of(path: Path) -> dict[str, Path]:
    """Returns the folder of each module by the name of its kind."""
    try:
        modules = json.loads(path.read_text(encoding="utf-8"))
        kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
        folders = [path.parent / str(module["path"]) for module in modules]
    except (json.JSONDecodeError, UnicodeDecodeError, TypeError, KeyError) as error:
        raise ValueError(
            f"`{path}` must be a list of modules, each with `type` and `path`. Received: {error!r}"
        ) from error
    places = [_ORDER.index(kind) if kind in _ORDER else -1 for kind in kinds]
    is_ordered = places == sorted(set(places)) and -1 not in places
    if not is_ordered or kinds[:2] != list(_ORDER[:2]) or folders[0] != path.parent:
        raise ValueError(
            f"`{path}` must have the modules Transformer (with the path ''), Pooling, and then "
            f"optionally Dense and Normalize. Received: {', '.join(kinds)}"
        )
    return dict(zip(kinds, folders))


def _length(folder: Path, positions: int) -> int:
    """Returns the most tokens of a text: the first number in the files, or all positions."""
    for name, key in _LENGTHS.items():
        given: Any = read_json_object(folder / name) if (folder / name).is_file() else {}
        if given.get("do_lower_case") is True and "max_seq_length" in given:
            raise ValueError(
                f"`{folder / name}`: `do_lower_case` must be false, as the tokenizer says itself "
                "whether it lower-cases. Received: do_lower_case=True"
            )
        if isinstance(given.get(key), int):
            return min(int(given[key]), positions)
    return positions


def _pooling(path: Path) -> str:
    given = read_json_object(path)
    named = given.get("pooling_mode")
    if named is None:
        flags = {key for key, value in given.items() if key.startswith("pooling_mode_") and value}
        named = [_FLAGS.get(flag, flag) for flag in sorted(flags)]
        named = named[0] if len(named) == 1 else named
    if named not in _FLAGS.values():
        raise ValueError(
            f"`{path}`: the pooling must be one of {list(_FLAGS.values())}. Received: {named}"
        )
    return str(named)


def _dense(folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Returns the settings of a dense layer, and its arrays."""
    path = folder / "config.json"
    given = read_json_object(path)
    name = given.get("activation_function")
    if name not in _ACTIVATIONS or given.get("use_residual"):
        raise ValueError(
            f"`{path}` must have an activation_function of {list(_ACTIVATIONS)}, and no residual. "
            f"Received: activation_function={name!r}, use_residual={given.get('use_residual')}"
        )
    if not (folder / WEIGHTS).is_file():
        raise FileNotFoundError(f"`{folder / WEIGHTS}` must hold the weights of the dense layer.")
    with open_safetensors(folder / WEIGHTS) as files:
        if "linear.weight" not in files.shapes:
            raise ValueError(
                f"`{folder / WEIGHTS}` must hold linear.weight. Received: {', '.join(files.shapes)}"
            )
        weight = files.load("linear.weight")
        has_bias = "linear.bias" in files.shapes
        bias = files.load("linear.bias") if has_bias else np.zeros(len(weight), weight.dtype)
    settings = {"dense": len(weight), "dense_activation": _ACTIVATIONS[name]}
    return settings, {"dense.weight": weight, "dense.bias": bias}


def _check_prompt(path: Path) -> None:
    """Checks that no text is put before each text by default."""
    given = read_json_object(path) if path.is_file() else {}
    name = given.get("default_prompt_name")
    if name and (given.get("prompts") or {}).get(name):
        raise ValueError(
            f"`{path}`: `default_prompt_name` must be null, as no prompt is put before texts here. "
            f"Received: default_prompt_name={name!r}"
        )
