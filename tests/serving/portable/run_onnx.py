"""Networks of ONNX beside the Keras models that they were written from."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from kbert.serving.portable.onnx_export import export_onnx

_ROWS, _CHOICES, _LENGTH = 3, 2, 9


def token_inputs(encoder: Any, choices: bool = False) -> dict[str, np.ndarray]:
    """Random rows under Optimum's names: all tokens real, a part of them, and one alone."""
    shape = (_ROWS, _CHOICES, _LENGTH) if choices else (_ROWS, _LENGTH)
    mask = np.ones(shape, "int64")
    mask[1, ..., 5:], mask[2, ..., 1:] = 0, 0
    ids = np.random.default_rng(3).integers(0, encoder.vocabulary_size, shape)
    segments = (np.arange(_LENGTH) > 3) * mask
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


def as_kbert(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same for a model of kbert."""
    return {
        "token_ids": inputs["input_ids"].astype("int32"),
        "segment_ids": inputs["token_type_ids"].astype("int32"),
        "padding_mask": inputs["attention_mask"] > 0,
    }


def run_onnx(folder: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of a network in ONNX Runtime, by their names."""
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    given = {one.name: inputs[one.name] for one in session.get_inputs()}
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(names, given)))


def exported(model: Any, base: Path, choices: bool = False) -> tuple[Any, Any, np.ndarray]:
    """What a model's network gives for `token_inputs`, what the model does, and the mask."""
    inputs = token_inputs(model.encoder, choices)
    found = run_onnx(export_onnx(model, base, "network"), inputs)
    return found, model(as_kbert(inputs), training=False), inputs["attention_mask"]
