"""`networks`: those of a model, from token ids to the outputs of its task, as ONNX.

Inputs and outputs are named as Hugging Face's Optimum names them, and so are the axes of any size.

Shapes: B batch, T length, K choices, D hidden, V vocabulary.
"""

from contextlib import nullcontext
from functools import singledispatch
from typing import Any

from kbert.serving.portable.onnx_encoders import (
    EncoderInputs,
    check_encoder,
    encoded,
    first_state,
    pooled,
    reads_segments,
)
from kbert.serving.portable.onnx_graph import OnnxGraph
from kbert.serving.portable.onnx_transformers import check_transformer, transformer_networks
from kbert.tasks.classification.head import SequenceClassification, SequenceHead
from kbert.tasks.embedding.head import SequenceEmbedding
from kbert.tasks.multi_label.head import MultiLabelClassification
from kbert.tasks.multiple_choice.head import ChoiceSelection
from kbert.tasks.ner.head import TokenClassification
from kbert.tasks.pretraining.head import Pretraining
from kbert.tasks.question_answering.head import SpanExtraction
from kbert.tasks.regression.head import SequenceRegression
from kbert.tasks.translation.head import Translation

BATCH, CHOICES, LENGTH = "batch_size", "num_choices", "sequence_length"
# The score of a padded token as the start or end of an answer, as `SpanExtraction` gives it.
_NEVER = -1e9
_LEAST = -3.4e38  # about the smallest float32
_TINY = 1e-24  # the square of the least length of a vector that is made one of length 1


def networks(model: Any) -> dict[str, OnnxGraph]:
    """Returns the networks of a model by their names: one, `model`, or those of a translator.

    Raises:
        ImportError: the package onnx is not installed.
        ValueError: the task's network, or that of the encoder, cannot be written.
    """
    if isinstance(model, Translation):
        check_transformer(model.transformer)
        with _merged(model.transformer.bert):
            return transformer_networks(model.transformer)
    graph = OnnxGraph()
    with _merged(getattr(model, "encoder", None)):
        write_network(model, graph)
    return {"model": graph}


def _merged(encoder: Any) -> Any:
    """Returns the context in which an active LoRA adapter is in the weights of an encoder."""
    return getattr(encoder, "merged_adapter", nullcontext)()


@singledispatch
def write_network(model: Any, graph: OnnxGraph) -> None:
    """Writes the network of a model with an encoder and a head; raises a ValueError for others."""
    raise ValueError(
        "`model` must read texts for the format onnx: have an encoder with a head, or translate. "
        f"Received: a {type(model).__name__}"
    )


@write_network.register(SequenceClassification)
@write_network.register(MultiLabelClassification)
@write_network.register(SequenceRegression)
def _(model: Any, graph: OnnxGraph) -> None:
    inputs, states = _states(model, graph)
    logits = _of_sequence(graph, model.sequence_head, model.encoder, states, inputs)
    graph.output("logits", logits, [BATCH, model.sequence_head.units])


@write_network.register
def _(model: ChoiceSelection, graph: OnnxGraph) -> None:
    check_encoder(model.encoder)
    given = _inputs(graph, model.encoder, (BATCH, CHOICES, LENGTH))
    rows = [None if one is None else graph.op("Flatten", one, axis=2) for one in given]  # (B K, T)
    inputs = EncoderInputs(str(rows[0]), str(rows[1]), rows[2])
    states = encoded(graph, model.encoder, inputs)
    logits = _of_sequence(graph, model.sequence_head, model.encoder, states, inputs)
    shape = graph.op("Slice", graph.op("Shape", given.tokens), graph.whole([0]), graph.whole([2]))
    graph.output("logits", graph.op("Reshape", logits, shape), [BATCH, CHOICES])


@write_network.register
def _(model: TokenClassification, graph: OnnxGraph) -> None:
    _, states = _states(model, graph)
    logits = graph.linear(states, model.token_head)
    graph.output("logits", logits, [BATCH, LENGTH, model.num_labels])


@write_network.register
def _(model: SpanExtraction, graph: OnnxGraph) -> None:
    inputs, states = _states(model, graph)
    logits, real = graph.linear(states, model.span_head), graph.op("Cast", inputs.mask, to=9)
    for number, name in enumerate(("start_logits", "end_logits")):
        one = graph.op("Gather", logits, graph.whole(number), axis=2)
        graph.output(name, graph.op("Where", real, one, graph.number(_NEVER)), [BATCH, LENGTH])


@write_network.register
def _(model: SequenceEmbedding, graph: OnnxGraph) -> None:
    inputs, states = _states(model, graph)
    vector = _pooled_states(graph, model.pooling, states, inputs)
    if model.dense_layer is not None:
        vector = graph.linear(vector, model.dense_layer)
    if model.normalize:
        squares = graph.op("ReduceSumSquare", vector, axes=[1], keepdims=1)
        length = graph.op("Sqrt", graph.op("Max", squares, graph.number(_TINY)))
        vector = graph.op("Div", vector, length)
    graph.output("token_embeddings", states, [BATCH, LENGTH, model.encoder.hidden_dim])
    graph.output("sentence_embedding", vector, [BATCH, model.width])


@write_network.register
def _(model: Pretraining, graph: OnnxGraph) -> None:
    inputs, states = _states(model, graph)
    head = model.token_head
    hidden = graph.layer_norm(graph.linear(states, head.transform), head.layer_norm)
    if head.tied:
        # A node, not a second table: runtimes turn it over once, when they load it.
        table = graph.weight(model.encoder.embeddings.token_embedding.embeddings)
        logits = graph.op("MatMul", hidden, graph.op("Transpose", table, perm=[1, 0]))
        logits = graph.op("Add", logits, graph.weight(head.output_bias.bias))
    else:
        logits = graph.linear(hidden, head.decoder)
    name = "prediction_logits" if model.learns_pairs else "logits"
    graph.output(name, logits, [BATCH, LENGTH, head.vocabulary_size])
    if model.learns_pairs:
        pairs = graph.linear(pooled(graph, model.encoder, states, inputs), model.pair_head)
        graph.output("seq_relationship_logits", pairs, [BATCH, 2])


def _inputs(graph: OnnxGraph, encoder: Any, axes: tuple[str, ...]) -> EncoderInputs:
    tokens, mask = graph.input("input_ids", axes), graph.input("attention_mask", axes)
    segments = graph.input("token_type_ids", axes) if reads_segments(encoder) else None
    return EncoderInputs(tokens, mask, segments)


def _states(model: Any, graph: OnnxGraph) -> tuple[EncoderInputs, str]:
    """Writes the encoder of a model; returns its inputs, and its states (B, T, D)."""
    check_encoder(model.encoder)
    inputs = _inputs(graph, model.encoder, (BATCH, LENGTH))
    return inputs, encoded(graph, model.encoder, inputs)


def _of_sequence(
    graph: OnnxGraph, head: SequenceHead, encoder: Any, states: str, inputs: EncoderInputs
) -> str:
    """Writes a `SequenceHead`; returns its logits (B, units)."""
    if head.head == "two_layer":
        state = graph.linear(first_state(graph, states), head.hidden)
    else:
        state = pooled(graph, encoder, states, inputs)
    return graph.linear(state, head.classifier)


def _pooled_states(graph: OnnxGraph, pooling: str, states: str, inputs: EncoderInputs) -> str:
    """Returns the mean, the maximum or the first of the states of real tokens, (B, D)."""
    if pooling == "cls":
        return first_state(graph, states)
    real = graph.op("Unsqueeze", inputs.mask, axes=[2])
    if pooling == "max":
        seen = graph.op("Where", graph.op("Cast", real, to=9), states, graph.number(_LEAST))
        return graph.op("ReduceMax", seen, axes=[1], keepdims=0)
    real = graph.op("Cast", real, to=1)
    total = graph.op("ReduceSum", graph.op("Mul", states, real), axes=[1], keepdims=0)
    count = graph.op("ReduceSum", real, axes=[1], keepdims=0)
    return graph.op("Div", total, graph.op("Max", count, graph.number(1.0)))
