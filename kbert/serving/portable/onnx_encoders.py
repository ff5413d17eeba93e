"""Encoders as nodes of ONNX: embeddings, blocks with or without adapters, the pooler.

Shapes: B batch, T length, D hidden, N heads, H = D / N head size, K adapters of a fusion.
"""

from typing import Any, NamedTuple

import numpy as np

from kbert.architectures import encoder_class
from kbert.layers.adapters.block_adapters import HoulsbyAdapter, PfeifferAdapter
from kbert.layers.adapters.fusion import FusedAdapters
from kbert.layers.adapters.low_rank import LoraAdapter
from kbert.layers.encoder_block import ATTENTION, FEED_FORWARD, EncoderBlock
from kbert.serving.portable.onnx_attention import context, in_heads, places, projected, score_mask
from kbert.serving.portable.onnx_graph import OnnxGraph

# Architectures that compute what is written here.
ENCODERS = ("bert", "albert", "roberta", "distilbert", "electra")


class EncoderInputs(NamedTuple):
    """Names of what an encoder reads, each int64 (B, T); `segments` may be None."""

    tokens: str
    mask: str
    segments: str | None


def check_encoder(encoder: Any) -> None:
    """Raises a ValueError unless the encoder can be written."""
    # A class that derives from one of them may compute anything.
    if type(encoder) not in map(encoder_class, ENCODERS):
        raise ValueError(
            f"`model` must have an encoder of the architecture {', '.join(ENCODERS)} for a network "
            f"of another runtime. Received: a {type(encoder).__name__}"
        )
    if encoder.has_routed_adapters:
        raise ValueError(
            "`model` must have one active adapter, a fusion, or none, for such a network. "
            f"Received: {', '.join(encoder.active_adapters)}, of which each row has its own"
        )


def reads_segments(encoder: Any) -> bool:
    """Returns whether an encoder reads segment ids: where there are several segments."""
    return bool(encoder.num_segments > 1)


def encoded(graph: OnnxGraph, encoder: Any, inputs: EncoderInputs) -> str:
    """Writes embeddings and blocks; returns the states (B, T, D)."""
    hidden = _embedded(graph, encoder, inputs)
    mask = score_mask(graph, inputs.mask, inputs.tokens if encoder.causal else None)
    adapters = encoder.adapters.of_blocks(None, None) or [None] * encoder.num_layers
    for block, adapter in zip(encoder.layer_blocks, adapters, strict=True):
        hidden = _Block(graph, block, adapter).output(hidden, mask)
    return hidden


def pooled(graph: OnnxGraph, encoder: Any, states: str, inputs: EncoderInputs) -> str:
    """Writes the pooler; returns its output (B, D)."""
    if not encoder.causal:
        return graph.linear(first_state(graph, states), encoder.pooler)
    last = graph.op("Mul", places(graph, inputs.tokens), inputs.mask)
    last = graph.op("ReduceMax", last, axes=[1], keepdims=1)
    return graph.linear(graph.op("GatherND", states, last, batch_dims=1), encoder.pooler)


def first_state(graph: OnnxGraph, states: str) -> str:
    """Returns the states (B, D) of the first tokens of (B, T, D)."""
    return graph.op("Gather", states, graph.whole(0), axis=1)


def _embedded(graph: OnnxGraph, encoder: Any, inputs: EncoderInputs) -> str:
    layer = encoder.embeddings
    table, first = layer.position_embedding.embeddings, layer.position_embedding.first
    segment = np.zeros(layer.hidden_dim, "float32")
    if layer.num_segments and inputs.segments is None:  # all tokens are of the first segment
        segment = np.asarray(layer.segment_embedding.embeddings)[0].astype("float32")
    positions = graph.weight(table, lambda rows: rows[first:] + segment)
    total = graph.op("Gather", graph.weight(layer.token_embedding.embeddings), inputs.tokens)
    total = graph.op("Add", total, graph.op("Gather", positions, places(graph, inputs.tokens)))
    if inputs.segments is not None:
        segments = graph.weight(layer.segment_embedding.embeddings)
        total = graph.op("Add", total, graph.op("Gather", segments, inputs.segments))
    hidden = graph.layer_norm(total, layer.layer_norm)
    project = encoder.embedding_projection
    return hidden if project is None else graph.linear(hidden, project)


class _Block:
    """A layer: its `EncoderBlock`, and its adapter or None."""

    def __init__(self, graph: OnnxGraph, block: EncoderBlock, adapter: Any) -> None:
        self.graph, self.block, self.adapter = graph, block, adapter

    def output(self, hidden: str, mask: str) -> str:
        """Writes the layer; returns its output (B, T, D)."""
        attended = self._joined(ATTENTION, hidden, self._attention(hidden, mask))
        return self._joined(FEED_FORWARD, attended, self._fed(attended))

    def _attention(self, hidden: str, mask: str) -> str:
        graph, layer = self.graph, self.block.attention
        width, added = layer.output_linear.units, self._added("qkv", hidden)

        def split(part: int, *axes: int) -> str:
            product = projected(graph, hidden, layer.qkv, part, width, added.get(part))
            return in_heads(graph, product, layer, *axes)

        query, key, value = split(0, 0, 2, 1, 3), split(1, 0, 2, 3, 1), split(2, 0, 2, 1, 3)
        found = context(graph, layer, query, key, value, mask)
        return self._linear("attention_output", found, layer.output_linear)

    def _fed(self, hidden: str) -> str:
        layer = self.block.feed_forward
        inner = self._linear("intermediate", hidden, layer.intermediate)
        return self._linear("output", inner, layer.output_linear)

    def _linear(self, name: str, inputs: str, layer: Any) -> str:
        return self.graph.linear(inputs, layer, self._added(name, inputs).get(0))

    def _added(self, name: str, inputs: str) -> dict[int, str]:
        """Returns what a LoRA adapter adds to the product of a dense layer, by the part of it."""
        low: Any = None
        if isinstance(self.adapter, LoraAdapter):
            low = self.adapter.low_rank.get(name)
        found = {}
        for number, part in enumerate(() if low is None else low.targets):
            down = self.graph.weight(low.down, lambda a: _of_target(a, low, number))
            up = self.graph.weight(low.up, lambda b: b[number])
            found[part] = self.graph.op("MatMul", self.graph.op("MatMul", inputs, down), up)
        return found

    def _joined(self, sublayer: str, inputs: str, hidden: str) -> str:
        """Returns the output of a sublayer with its residual connection and its adapter."""
        graph, adapter = self.graph, self.adapter
        norm = getattr(self.block, f"{sublayer}_residual").layer_norm
        total = graph.op("Add", hidden, inputs)
        if isinstance(adapter, HoulsbyAdapter):
            more = self._bottleneck(adapter.bottlenecks[sublayer], hidden)
            return graph.layer_norm(graph.op("Add", total, more), adapter.norms[sublayer])
        output = graph.layer_norm(total, norm)
        if sublayer == FEED_FORWARD and isinstance(adapter, PfeifferAdapter):
            more = self._bottleneck(adapter.bottleneck, output)
        elif sublayer == FEED_FORWARD and isinstance(adapter, FusedAdapters):
            more = self._fused(adapter, output)
        else:
            return output
        return graph.layer_norm(graph.op("Add", more, total), norm)

    def _bottleneck(self, layer: Any, inputs: str) -> str:
        return self.graph.linear(self.graph.linear(inputs, layer.down), layer.up)

    def _fused(self, fused: FusedAdapters, asked: str) -> str:
        """Returns the mean of the values of fused adapters, (B, T, D)."""
        graph, fusion = self.graph, fused.fusion
        made = [self._bottleneck(adapter.bottleneck, asked) for adapter in fused.adapters]
        made = [graph.op("Unsqueeze", one, axes=[2]) for one in made]
        outputs = graph.op("Concat", *made, axis=2)  # (B, T, K, D)
        query = graph.op("Unsqueeze", graph.linear(asked, fusion.query), axes=[2])
        products = graph.op("Mul", query, graph.linear(outputs, fusion.key))
        scores = graph.op("ReduceSum", products, axes=[3], keepdims=0)
        # Over the last axis, (B, T, K): what opset 12 calls an axis is all from there on.
        weights = graph.op("Unsqueeze", graph.op("Softmax", scores, axis=2), axes=[3])
        mean = graph.op("ReduceSum", graph.op("Mul", weights, outputs), axes=[2], keepdims=0)
        return graph.op("MatMul", mean, graph.weight(fusion.value))


def _of_target(down: np.ndarray, low: Any, number: int) -> np.ndarray:
    """Returns the columns of a `LowRank`'s A that belong to one target, with its factor."""
    return down[:, number * low.rank : (number + 1) * low.rank] * (low.alpha / low.rank)
