"""Transformers that translate, as ONNX: an encoder, a decoder of whole targets, and one of steps.

Inputs, outputs and axes are named as Hugging Face's Optimum names them. Those of a BERT beside the
encoder, for which Optimum has no names, are named likewise, with `bert`.

Shapes: B batch, S source length, L in BERT's tokens, T target length, P tokens before a step, D
hidden, N heads, H = D / N head size, V vocabulary.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kbert.architectures import BERT_FUSED, TRANSFORMER, encoder_decoder_class
from kbert.layers.fused_blocks import FusedResidual
from kbert.serving.portable.onnx_attention import context, in_heads, places, projected, score_mask
from kbert.serving.portable.onnx_encoders import EncoderInputs, check_encoder, encoded
from kbert.serving.portable.onnx_graph import OnnxGraph

# Maps the name of an input (B, T, D) to that of an output.
Sublayer = Callable[[str], str]
_BATCH, _TARGET, _PAST = "batch_size", "decoder_sequence_length", "past_decoder_sequence_length"
_SOURCE, _BERT = "encoder", "bert"  # what a decoder attends to
_LENGTHS = {_SOURCE: "encoder_sequence_length", _BERT: "bert_sequence_length"}


def check_transformer(transformer: Any) -> None:
    """Raises a ValueError unless the networks of a translator's model can be written."""
    # A class that derives from one of them may compute anything.
    if type(transformer) not in map(encoder_decoder_class, (TRANSFORMER, BERT_FUSED)):
        raise ValueError(
            "`model` must translate by a Transformer, with or without BERT, for the format onnx. "
            f"Received: a {type(transformer).__name__}"
        )
    if transformer.bert is not None:
        check_encoder(transformer.bert)


def transformer_networks(transformer: Any) -> dict[str, OnnxGraph]:
    """Returns the networks of a `Transformer` or `BertFusedTransformer`, by their names.

    `encoder_model` reads a source. `decoder_model` reads the beginning of a target, and returns
    keys and values of it and of the source; `decoder_with_past_model` takes them with one token
    more, and returns those of the target again.
    """
    return {
        "encoder_model": _encoder(transformer),
        "decoder_model": _Decoder(transformer, cached=False).written(),
        "decoder_with_past_model": _Decoder(transformer, cached=True).written(),
    }


def _encoder(model: Any) -> OnnxGraph:
    graph, axes = OnnxGraph(), (_BATCH, _LENGTHS[_SOURCE])
    ids, real = graph.input("input_ids", axes), graph.input("attention_mask", axes)
    mask, bert, bert_mask = score_mask(graph, real), "", ""
    if model.bert is not None:
        axes = (_BATCH, _LENGTHS[_BERT])
        bert_ids, real = (graph.input(f"bert_{name}", axes) for name in (ids, real))
        bert = encoded(graph, model.bert, EncoderInputs(bert_ids, real, None))
        bert_mask = score_mask(graph, real)
    hidden = _embedded(graph, model, ids, "source", places(graph, ids))
    for block in model.encoder_blocks:
        attend = [_to_itself(graph, block.attention, mask)]
        if bert:
            seen = _keys_values(graph, block.bert_attention, bert)
            attend.append(_to_memory(graph, block.bert_attention, seen, bert_mask))
        hidden = _fed(graph, block, _residual(graph, block.attention_residual, hidden, attend))
    if model.norm == "pre":
        hidden = graph.layer_norm(hidden, model.encoder_norm)
    graph.output("last_hidden_state", hidden, [_BATCH, _LENGTHS[_SOURCE], model.hidden_dim])
    if bert:
        graph.output("bert_hidden_state", bert, [*axes, model.bert.hidden_dim])
    return graph


class _Decoder:
    """The decoder: of whole targets, or of one token more, with what is `cached` of the others.

    Keys and values are (B, N, P, H) of the target, (B, N, S, H) of each memory.
    """

    def __init__(self, model: Any, cached: bool) -> None:
        self.graph, self.model, self.cached = OnnxGraph(), model, cached
        self.memories = [_SOURCE] if model.bert is None else [_SOURCE, _BERT]
        self.present: list[tuple[str, str, str]] = []  # places, values and lengths

    def written(self) -> OnnxGraph:
        """Writes the network, and returns its graph."""
        graph, model = self.graph, self.model
        length: str | int = 1 if self.cached else _TARGET
        ids = graph.input("input_ids", (_BATCH, length))
        masks = {
            name: score_mask(graph, graph.input(f"{name}_attention_mask", (_BATCH, _LENGTHS[name])))
            for name in self.memories
        }
        order, own_mask = places(graph, ids), None
        if self.cached:
            past = graph.op("Shape", self._past("0.decoder.key", _PAST))
            order = graph.op("Add", order, graph.op("Gather", past, graph.whole(2)))
        else:
            own_mask = score_mask(graph, None, causal=ids)
        hidden = _embedded(graph, model, ids, "target", order)
        for number, block in enumerate(model.decoder_blocks):
            hidden = self._block(number, block, hidden, own_mask, masks)
        if model.norm == "pre":
            hidden = graph.layer_norm(hidden, model.decoder_norm)
        axes = [_BATCH, length, model.vocabulary_size]
        graph.output("logits", _logits(graph, model, hidden), axes)
        for place, value, held in self.present:
            graph.output(f"present.{place}", value, self._axes(held))
        return graph

    def _block(
        self, number: int, block: Any, hidden: str, own_mask: str | None, masks: dict[str, str]
    ) -> str:
        graph = self.graph
        attend = _to_itself(graph, block.self_attention, own_mask, partial(self._so_far, number))
        attended = _residual(graph, block.self_attention_residual, hidden, [attend])
        crossed = []
        for name in self.memories:
            attention = block.cross_attention if name == _SOURCE else block.bert_attention
            seen = self._memory(number, name, attention)
            crossed.append(_to_memory(graph, attention, seen, masks[name]))
        hidden = _residual(graph, block.cross_attention_residual, attended, crossed)
        return _fed(graph, block, hidden)

    def _so_far(self, number: int, own: Sequence[str]) -> list[str]:
        """Returns keys and values of the target so far, of which `own` are new."""
        found = list(own)
        for index, place in enumerate(_places_of(number, "decoder")):
            if self.cached:
                found[index] = self.graph.op("Concat", self._past(place, _PAST), own[index], axis=2)
            self.present.append((place, found[index], f"{_PAST} + 1" if self.cached else _TARGET))
        return found

    def _memory(self, number: int, name: str, attention: Any) -> list[str]:
        """Returns keys and values of what the decoder attends to."""
        length, names = _LENGTHS[name], _places_of(number, name)
        if self.cached:
            return [self._past(place, length) for place in names]
        width = self.model.hidden_dim if name == _SOURCE else self.model.bert.hidden_dim
        states = self.graph.input(f"{name}_hidden_states", (_BATCH, length, width), "float32")
        found = _keys_values(self.graph, attention, states)
        self.present += zip(names, found, [length] * 2)
        return found

    def _past(self, place: str, length: str) -> str:
        return self.graph.input(f"past_key_values.{place}", self._axes(length), "float32")

    def _axes(self, length: str) -> list[str | int]:
        heads = self.model.num_heads
        return [_BATCH, heads, length, self.model.hidden_dim // heads]


def _places_of(number: int, name: str) -> list[str]:
    return [f"{number}.{name}.{part}" for part in ("key", "value")]


def _to_itself(
    graph: OnnxGraph,
    attention: Any,
    mask: str | None,
    so_far: Callable[[Sequence[str]], Sequence[str]] = list,
) -> Sublayer:
    """Self-attention; `so_far` adds the keys and values of earlier tokens."""

    def attend(x: str) -> str:
        width = attention.output_linear.units
        parts = [projected(graph, x, attention.qkv, part, width) for part in range(3)]
        query, *own = [in_heads(graph, part, attention, 0, 2, 1, 3) for part in parts]
        return _attended(graph, attention, query, so_far(own), mask)

    return attend


def _to_memory(
    graph: OnnxGraph, attention: Any, keys_values: Sequence[str], mask: str
) -> Sublayer:
    """Attention to a memory, of which keys and values are (B, N, S, H)."""

    def attend(x: str) -> str:
        query = in_heads(graph, graph.linear(x, attention.query), attention, 0, 2, 1, 3)
        return _attended(graph, attention, query, keys_values, mask)

    return attend


def _keys_values(graph: OnnxGraph, attention: Any, memory: str) -> list[str]:
    """Returns keys and values (B, N, S, H) of a memory (B, S, M)."""
    width = attention.output_linear.units
    parts = [projected(graph, memory, attention.key_value, part, width) for part in range(2)]
    return [in_heads(graph, part, attention, 0, 2, 1, 3) for part in parts]


def _attended(
    graph: OnnxGraph, attention: Any, query: str, keys_values: Sequence[str], mask: str | None
) -> str:
    key, value = keys_values
    turned = graph.op("Transpose", key, perm=[0, 1, 3, 2])
    found = context(graph, attention, query, turned, value, mask)
    return graph.linear(found, attention.output_linear)


def _embedded(graph: OnnxGraph, model: Any, ids: str, side: str, order: str) -> str:
    """Returns scaled vectors of tokens with those of their places, (B, T, D)."""
    table = getattr(model, f"{side}_embedding").embeddings
    vectors = graph.op("Gather", graph.weight(table), ids)
    vectors = graph.op("Mul", vectors, graph.number(math.sqrt(model.hidden_dim)))
    positions = getattr(model, f"{side}_positions")
    if model.positions == "learned":
        rows = graph.weight(positions.embeddings)
    else:
        rows = graph.array(f"{side}_positions", positions.table)
    return graph.op("Add", vectors, graph.op("Gather", rows, order))


def _logits(graph: OnnxGraph, model: Any, hidden: str) -> str:
    if model.tied == "none":
        return graph.linear(hidden, model.output_linear)
    # A node, not a second table: runtimes turn it over once, when they load it.
    table = graph.op("Transpose", graph.weight(model.target_embedding.embeddings), perm=[1, 0])
    found = graph.op("MatMul", hidden, table)
    if model.output_bias:
        found = graph.op("Add", found, graph.weight(model.output_linear.bias))
    return found


def _residual(
    graph: OnnxGraph, layer: Any, inputs: str, sublayers: Sequence[Sublayer]
) -> str:
    """Writes one sublayer, or two with their weights, within a residual connection."""
    is_pre = layer.norm == "pre"
    asked = graph.layer_norm(inputs, layer.layer_norm) if is_pre else inputs
    hidden = [sublayer(asked) for sublayer in sublayers]
    if isinstance(layer, FusedResidual):
        weights = layer.drop_net.forced or (0.5, 0.5)
        parts = [graph.op("Mul", h, graph.number(w)) for h, w in zip(hidden, weights, strict=True)]
        hidden = [graph.op("Add", *parts)]
    total = graph.op("Add", hidden[0], inputs)
    return total if is_pre else graph.layer_norm(total, layer.layer_norm)


def _fed(graph: OnnxGraph, block: Any, hidden: str) -> str:
    network = block.feed_forward

    def feed(x: str) -> str:
        return graph.linear(graph.linear(x, network.intermediate), network.output_linear)

    return _residual(graph, block.feed_forward_residual, hidden, [feed])
