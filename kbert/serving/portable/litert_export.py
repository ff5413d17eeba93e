"""Export of a model's network as LiteRT (TensorFlow Lite), for phones and small computers."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from kbert.gradients import without_gradients
from kbert.serving.portable.onnx_encoders import check_encoder, reads_segments
from kbert.serving.portable.portable_folder import (
    TEXTS,
    NetworkTensor,
    portable_folder,
    write_card,
    write_settings,
)
from kbert.tasks.classification.head import SequenceClassification
from kbert.tasks.multi_label.head import MultiLabelClassification
from kbert.tasks.ner.head import TokenClassification
from kbert.tasks.question_answering.head import SpanExtraction
from kbert.tasks.regression.head import SequenceRegression

LITERT_FILE = "model.tflite"
_TASKS = (
    *(SequenceClassification, SequenceRegression, MultiLabelClassification),
    *(TokenClassification, SpanExtraction),
)


def export_litert(
    model: Any,
    base: str | os.PathLike[str],
    name: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> Path:
    """Writes BASE/<name>/, a folder with a model's network as `model.tflite`, from token ids.

    Its signature has the inputs and outputs of `export_onnx`, with ids in int32, and sizes B and T
    that a caller sets with each request (`resize_tensor_input`, or a signature runner). All ops are
    LiteRT's own, none TensorFlow's. Files and their appearance are those of `export_onnx`.

    Args:
        model: a model that classifies, scores or reads texts, with an encoder of kbert's.
        base: the folder of all models.
        name: the model's name; the Keras model's name by default.
        about: facts about the training for the card; see `kbert.serving.export.base_files`.

    Returns:
        The folder.

    Raises:
        ValueError: the name is wrong, or the model's task or encoder cannot be written.
        FileExistsError: the folder is there already.
    """
    _check(model)
    name = model.name if name is None else name
    with portable_folder(base, name) as folder:
        with model.encoder.merged_adapter():
            written, inputs, outputs = _converted(model)
        (folder / LITERT_FILE).write_bytes(written)
        write_settings(folder, model)
        runtime = f"`{LITERT_FILE}` is LiteRT, with ops of LiteRT's own alone."
        write_card(folder, name, model, {LITERT_FILE: (inputs, outputs)}, [runtime, TEXTS], about)
    return Path(base, name)


def _check(model: Any) -> None:
    if not isinstance(model, _TASKS):
        raise ValueError(
            "`model` must classify, score or read texts for the format litert. "
            f"Received: a {type(model).__name__}"
        )
    check_encoder(model.encoder)
    if model.encoder.causal:
        raise ValueError("`model` must have an encoder that is not causal for the format litert.")
    if model.compute_dtype != "float32":
        raise ValueError(
            "`model` must compute in float32 for the format litert; `dtype` of `kbert.load` makes "
            f"it so. Received: {model.compute_dtype}"
        )


def _converted(model: Any) -> tuple[bytes, list[NetworkTensor], list[NetworkTensor]]:
    """Returns the content of the file, and the network's inputs and outputs."""
    names = ["input_ids", "attention_mask"]
    names += ["token_type_ids"] if reads_segments(model.encoder) else []
    specs = [tf.TensorSpec((None, None), tf.int32, name=name) for name in names]

    def network(*given: tf.Tensor) -> dict[str, tf.Tensor]:
        inputs = {"token_ids": given[0], "padding_mask": given[1] > 0}
        inputs |= {"segment_ids": given[2]} if len(given) > 2 else {}
        return _named(model, _computed(model, inputs))

    with without_gradients():
        traced = tf.function(network, input_signature=specs, autograph=False)
        concrete = traced.get_concrete_function()
    # Not the model itself: of a Keras model the converter stores weights that nobody has set.
    holder = tf.Module()
    holder.weights = [weight.value for weight in model.weights]
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], holder)
    shapes = {key: value.shape.as_list() for key, value in concrete.structured_outputs.items()}
    inputs = [NetworkTensor(name, "int32", ("any", "any")) for name in names]
    outputs = [
        NetworkTensor(key, "float32", ["any" if size is None else size for size in shape])
        for key, shape in shapes.items()
    ]
    return converter.convert(), inputs, outputs


def _computed(model: Any, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
    """Returns what a model computes, with padding: without it, it needs ops that LiteRT lacks."""
    encoder = model.encoder
    states = encoder.hidden_states(inputs, training=False)[-1]
    outputs = {"sequence_output": states}
    if encoder.pooler is not None:
        outputs["pooled_output"] = encoder.pooler(states[:, 0])
    return model.read_outputs(outputs, inputs, training=False)


def _named(model: Any, computed: tf.Tensor) -> dict[str, tf.Tensor]:
    if isinstance(model, SpanExtraction):
        return {"start_logits": computed[..., 0], "end_logits": computed[..., 1]}
    return {"logits": computed[:, tf.newaxis] if computed.shape.rank == 1 else computed}
