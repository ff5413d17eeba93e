"""Attention masks: bool arrays in which True means "this query may attend to this key".

Shapes: B batch, T query length, S key length. A mask is anything that broadcasts against
(B, N, T, S), the scores of N heads; masks combine with `&`.
"""

from typing import Any

from keras import ops

# Far below every score, yet finite: -inf minus -inf would be NaN in a fully masked row.
_NEVER = {"float16": -3e4}
_NEVER_DEFAULT = -1e9


def padding_attention_mask(padding_mask: Any) -> Any:
    """Lets every query see the real tokens only.

    Args:
        padding_mask: bool (B, S), True for a real token.

    Returns:
        bool (B, 1, 1, S).
    """
    return ops.expand_dims(ops.cast(padding_mask, "bool"), (1, 2))


def with_padding(attention_mask: Any, *padding_masks: Any) -> Any:
    """Combines an attention mask with padding masks.

    Args:
        attention_mask: bool, broadcastable to (B, N, T, S), or None.
        *padding_masks: bool (B, S), True for a real token, as Keras' implicit masks are; or None.

    Returns:
        bool, broadcastable to (B, N, T, S), or None where nothing is masked.
    """
    for padding_mask in padding_masks:
        if padding_mask is not None:
            real = padding_attention_mask(padding_mask)
            hides = attention_mask is not None
            attention_mask = ops.logical_and(attention_mask, real) if hides else real
    return attention_mask


def causal_attention_mask(length: Any) -> Any:
    """Lets each position see itself and what came before (Vaswani et al. 2017, section 3.2.3).

    Args:
        length: T, an int or a scalar integer tensor.

    Returns:
        bool (1, 1, T, T).
    """
    positions = ops.arange(length)
    return ops.expand_dims(ops.expand_dims(positions, 1) >= ops.expand_dims(positions, 0), (0, 1))


def sequence_attention_mask(token_ids: Any, padding_mask: Any, causal: bool) -> Any:
    """Returns the self-attention mask of a sequence.

    Args:
        token_ids: int (B, T).
        padding_mask: bool (B, T), True for a real token, or None where all are.
        causal: whether each position sees only itself and what came before.

    Returns:
        bool, broadcastable to (B, N, T, T), or None where nothing is masked.
    """
    real = None if padding_mask is None else padding_attention_mask(padding_mask)
    if not causal:
        return real
    before = causal_attention_mask(ops.shape(token_ids)[1])
    return before if real is None else ops.logical_and(real, before)


def last_real_state(states: Any, padding_mask: Any) -> Any:
    """Returns the state of the last real position, or of the first position in a row without any.

    Args:
        states: (B, T, D).
        padding_mask: bool (B, T), True for a real token, or None where all are.

    Returns:
        (B, D).
    """
    if padding_mask is None:
        return states[:, -1]
    places = ops.arange(ops.shape(states)[1], dtype="int32")
    last = ops.max(ops.where(ops.cast(padding_mask, "bool"), places, 0), axis=-1, initial=0)  # (B,)
    return ops.take_along_axis(states, last[:, None, None], axis=1)[:, 0]


def additive_mask(mask: Any, dtype: str) -> Any:
    """Returns what is added to scores: 0 where attention is allowed, a large negative elsewhere.

    Args:
        mask: bool, any shape.
        dtype: the dtype of the scores.

    Returns:
        An array of `dtype` and of the shape of `mask`.
    """
    never = _NEVER.get(dtype, _NEVER_DEFAULT)
    return ops.cast(ops.logical_not(mask), dtype) * ops.cast(never, dtype)


def any_visible(mask: Any, dtype: str) -> Any:
    """Marks the rows that are not fully masked.

    Args:
        mask: bool (..., T, S).
        dtype: the dtype of the result.

    Returns:
        (..., T, 1) of `dtype`: 1 where at least one key is visible, else 0.
    """
    return ops.cast(ops.any(mask, axis=-1, keepdims=True), dtype)
