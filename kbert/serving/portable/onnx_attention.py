"""Attention as nodes of ONNX, in the patterns that ONNX Runtime joins into one op.

Shapes: B batch, T query length, S key length, D hidden, N heads, H = D / N head size.
"""

import math
from typing import Any

from kbert.serving.portable.onnx_graph import OnnxGraph

# Added to the score of a key that must not be seen: BERT's own number (Devlin et al. 2019), and the
# only one that all versions of ONNX Runtime know when they join attention.
_NEVER = -10000.0
_FLOAT = 1  # the number of float32 in ONNX


def places(graph: OnnxGraph, tokens: str) -> str:
    """Returns 0, 1, 2, ... in each row of `tokens`, int64 (B, T).

    Made in the shape of the tokens: what is added to rows of another shape has a length that ONNX
    Runtime does not know, and it then joins fewer ops.
    """
    ones = graph.op("Add", graph.op("Mul", tokens, graph.whole(0)), graph.whole(1))
    return graph.op("CumSum", ones, graph.whole(1), exclusive=1)


def score_mask(graph: OnnxGraph, mask: str | None, causal: str | None = None) -> str:
    """Returns what is added to scores, broadcastable to (B, N, T, S): 0, or a large negative one.

    Args:
        graph: the graph.
        mask: int64 (B, S), 1 for a key that may be seen; or None, if `causal` is given.
        causal: int64 (B, T) tokens, each of which sees those up to itself; or None.
    """
    seen = []
    if mask is not None:
        real = graph.op("Unsqueeze", graph.op("Unsqueeze", mask, axes=[1]), axes=[2])
        seen.append(graph.op("Cast", real, to=_FLOAT))
    if causal is not None:
        order = places(graph, causal)
        queries = graph.op("Unsqueeze", order, axes=[1, 3])
        keys = graph.op("Unsqueeze", order, axes=[1, 2])
        before = graph.op("GreaterOrEqual", queries, keys)
        seen.append(graph.op("Cast", before, to=_FLOAT))
    both = graph.op("Mul", *seen) if len(seen) > 1 else seen[0]
    return graph.op("Mul", graph.op("Sub", graph.number(1.0), both), graph.number(_NEVER))


def projected(
    graph: OnnxGraph, inputs: str, layer: Any, part: int, width: int, added: str | None = None
) -> str:
    """Applies one of several matrices that a dense layer holds side by side, to (..., `width`)."""
    own = slice(part * width, (part + 1) * width)
    product = graph.op("MatMul", inputs, graph.weight(layer.kernel, lambda w: w[:, own]))
    product = graph.op("Add", product, graph.weight(layer.bias, lambda b: b[own]))
    return product if added is None else graph.op("Add", product, added)


def in_heads(graph: OnnxGraph, inputs: str, attention: Any, *axes: int) -> str:
    """Splits (B, T, D) into (B, T, N, H), and puts its axes into the order `axes`."""
    width = attention.output_linear.units
    shape = graph.whole([0, 0, attention.num_heads, width // attention.num_heads])
    return graph.op("Transpose", graph.op("Reshape", inputs, shape), perm=axes)


def context(
    graph: OnnxGraph, attention: Any, query: str, key: str, value: str, mask: str | None
) -> str:
    """Attends, to (B, T, D), before the output's matrix.

    Args:
        graph: the graph.
        attention: a `MultiHeadAttention`.
        query: (B, N, T, H).
        key: (B, N, H, S).
        value: (B, N, S, H).
        mask: from `score_mask`, or None.
    """
    width = attention.output_linear.units
    scale = graph.number(math.sqrt(width // attention.num_heads))
    scores = graph.op("Div", graph.op("MatMul", query, key), scale)
    scores = scores if mask is None else graph.op("Add", scores, mask)
    probabilities = graph.op("Softmax", scores, axis=3)
    found = graph.op("Transpose", graph.op("MatMul", probabilities, value), perm=[0, 2, 1, 3])
    return graph.op("Reshape", found, graph.whole([0, 0, width]))
