"""Attention masks, and the real tokens of a padded batch, for computation without padding.

A mask is a bool array in which True means "this query may attend to this key": anything that
broadcasts against (B, N, T, S), the scores of N heads; masks combine with `&`.

Everything in an encoder but attention looks at one token alone. It may as well run over the real
tokens of a batch, concatenated; only attention needs them in rows, and there a few groups of rows
of similar length need less padding than one.

Shapes: B batch, T query length, S key length, R real tokens, W width; a group has b rows of at most
t tokens, n in all.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from keras import ops

from kbert.gradients import own_gradient
from kbert.layers.embeddings import looked_up


def padding_attention_mask(padding_mask: Any) -> Any:
    """Lets every query see the real tokens only, from bool (B, S), True = real, to (B, 1, 1, S)."""
    return ops.expand_dims(ops.cast(padding_mask, "bool"), (1, 2))


def with_padding(attention_mask: Any, *padding_masks: Any) -> Any:
    """Combines an attention mask with padding masks, bool (B, S) as Keras' implicit masks are.

    Any of them may be None, and so is the result where nothing is masked.
    """
    for padding_mask in padding_masks:
        if padding_mask is not None:
            real = padding_attention_mask(padding_mask)
            hides = attention_mask is not None
            attention_mask = ops.logical_and(attention_mask, real) if hides else real
    return attention_mask


def causal_attention_mask(length: Any) -> Any:
    """Lets each of T positions see itself and what came before, bool (1, 1, T, T).

    Source: Vaswani et al. 2017, section 3.2.3.
    """
    positions = ops.arange(length)
    return ops.expand_dims(ops.expand_dims(positions, 1) >= ops.expand_dims(positions, 0), (0, 1))


def sequence_attention_mask(token_ids: Any, padding_mask: Any, causal: bool) -> Any:
    """Returns the self-attention mask of a sequence (B, T), or None where nothing is masked.

    `padding_mask` is None where all tokens are real; in a causal sequence each position sees only
    itself and what came before.
    """
    real = None if padding_mask is None else padding_attention_mask(padding_mask)
    if not causal:
        return real
    before = causal_attention_mask(ops.shape(token_ids)[1])
    return before if real is None else ops.logical_and(real, before)


def last_real_state(states: Any, padding_mask: Any) -> Any:
    """Returns of (B, T, D) the state (B, D) of the last real position; the first without any."""
    if padding_mask is None:
        return states[:, -1]
    places = ops.arange(ops.shape(states)[1], dtype="int32")
    last = ops.max(ops.where(ops.cast(padding_mask, "bool"), places, 0), axis=-1, initial=0)  # (B,)
    return ops.take_along_axis(states, last[:, None, None], axis=1)[:, 0]


def additive_mask(mask: Any, dtype: str) -> Any:
    """Returns what is added to scores: 0 where attention is allowed, a large negative elsewhere."""
    return ops.cast(ops.logical_not(mask), dtype) * ops.cast(-_never(dtype), dtype)


def hiding(mask: Any, dtype: str) -> Any:
    """Returns what is subtracted from scores: 0 where attention is allowed, else a large number."""
    return ops.cast(ops.logical_not(mask), dtype) * ops.cast(_never(dtype), dtype)


def _never(dtype: str) -> float:
    # Far above every score, yet finite: -inf minus -inf would be NaN in a fully masked row.
    return 3e4 if dtype == "float16" else 1e9


def any_visible(mask: Any, dtype: str) -> Any:
    """Returns (..., T, 1) for a mask (..., T, S): 1 where at least one key is visible, else 0."""
    return ops.cast(ops.any(mask, axis=-1, keepdims=True), dtype)


class RowGroup(NamedTuple):
    """Rows of similar length, as attention needs them: padded to the longest of them."""

    slots: Any  # int (b, t), the index in the group of each position's token; 0 at padded positions
    cells: Any  # int (n,), the index of each token among the b * t positions
    mask: Any  # bool, broadcastable to (b, N, t, t), True = may attend


@dataclass(frozen=True, eq=False)  # no tuple: Keras would look for tensors in it, and find numbers
class UnpaddedTokens:
    """Positions of the real tokens of a batch.

    A row without any keeps its first position, so that every row has a state to read.
    """

    places: Any  # int (R,), the index of each token among the B * T positions of the batch
    first: Any  # int (B,), the index of the first token of each row among the R tokens
    last: Any  # int (B,), the index of the last one
    shape: tuple[Any, Any]  # B and T, numbers where they are static, otherwise int scalars
    groups: tuple[RowGroup, ...]  # the rows, divided; the R tokens are ordered by group

    def of(self, batch: Any) -> Any:
        """Returns the values (R,) of the tokens from (B, T) values that need no gradient."""
        return looked_up(ops.reshape(batch, (-1,)), self.places)

    def positions(self) -> Any:
        """Returns the position (R,) of each token in its row."""
        return self.places % self.shape[1]

    def first_states(self, states: Any) -> Any:
        """Returns the states (B, W) of the first token of each row from (R, W)."""
        return _looked_up(states, self.first)

    def last_states(self, states: Any) -> Any:
        """Returns the states (B, W) of the last token of each row from (R, W)."""
        return _looked_up(states, self.last)

    def in_rows(self, states: Any) -> Any:
        """Returns states (R, W) as a batch (B, T, W), zero at padded positions."""
        batch, length = self.shape
        rows = _scattered(states, self.places, batch * length)
        return ops.reshape(rows, (batch, length, states.shape[-1]))

    def in_groups(self, states: Any) -> tuple[Any, ...]:
        """Returns states (R, W) as groups (b, t, W); a padded position holds some token's state."""
        width = states.shape[-1]

        @own_gradient
        def forward(states: Any) -> Any:
            pieces = self._pieces(states)
            grids = tuple(looked_up(p, g.slots) for p, g in zip(pieces, self.groups))

            # Padding is masked as a key and its queries are not read: its gradients are 0, and what
            # would be a sum over all positions that hold a token is a look-up of its own one.
            def backward(*upstream: Any) -> Any:
                return _joined(
                    looked_up(ops.reshape(of_grid, (-1, width)), group.cells)
                    for of_grid, group in zip(upstream, self.groups)
                )

            return grids, backward

        return tuple(forward(states))

    def from_groups(self, grids: tuple[Any, ...]) -> Any:
        """Returns groups (b, t, W), or (b * t, W), as states (R, W)."""
        width = grids[0].shape[-1]

        @own_gradient
        def forward(*grids: Any) -> Any:
            flat = [ops.reshape(grid, (-1, width)) for grid in grids]
            states = _joined(looked_up(f, g.cells) for f, g in zip(flat, self.groups))

            def backward(upstream: Any) -> Any:
                pieces = zip(self._pieces(upstream), self.groups, grids)
                return tuple(
                    ops.reshape(
                        _scattered(piece, group.cells, ops.size(group.slots)), ops.shape(grid)
                    )
                    for piece, group, grid in pieces
                )

            return states, backward

        return forward(*grids)

    def _pieces(self, states: Any) -> list[Any]:
        """Splits states (R, W) by group."""
        if len(self.groups) == 1:
            return [states]
        pieces, start = [], 0
        for group in self.groups:
            end = start + ops.shape(group.cells)[0]
            pieces.append(states[start:end])
            start = end
        return pieces


def unpadded_tokens(padding_mask: Any, causal: bool = False, groups: int = 1) -> UnpaddedTokens:
    """Finds the real tokens of a batch.

    Their number is known only at run time: not for XLA, where all shapes must be static. The mask,
    bool (B, T), may have any pattern. For attention the rows are divided into groups of similar
    length.
    """
    real = ops.cast(padding_mask, "bool")
    batch, length = ops.shape(real)[0], ops.shape(real)[1]
    kept = ops.logical_or(real, ops.arange(length) == 0)
    counts = ops.sum(ops.cast(kept, "int32"), axis=1)  # (B,)
    if groups == 1:
        (places,) = ops.nonzero(ops.reshape(kept, (-1,)))
        ends = ops.cumsum(counts)
        group = _group(counts, looked_up(ops.reshape(real, (-1,)), places), causal)
        return UnpaddedTokens(places, ends - counts, ends - 1, (batch, length), (group,))
    order = ops.cast(ops.argsort(-counts), "int32")
    row, column = ops.nonzero(looked_up(kept, order))
    places = looked_up(order, row) * length + column
    counts = looked_up(counts, order)
    ends = ops.cumsum(counts)
    rank = ops.argsort(order)  # the new index of each row of the batch
    visible, start, made = looked_up(ops.reshape(real, (-1,)), places), 0, []
    for index in range(groups):
        some = counts[batch * index // groups : batch * (index + 1) // groups]
        end = start + ops.sum(some)
        made.append(_group(some, visible[start:end], causal))
        start = end
    first, last = looked_up(ends - counts, rank), looked_up(ends - 1, rank)
    return UnpaddedTokens(places, first, last, (batch, length), tuple(made))


def _group(counts: Any, visible: Any, causal: bool) -> RowGroup:
    """Makes the group of rows with `counts` (b,) tokens; `visible` (n,) marks the real ones."""
    columns = ops.arange(ops.max(counts, initial=0))
    filled = columns < counts[:, None]  # (b, t)
    slots = ops.where(filled, (ops.cumsum(counts) - counts)[:, None] + columns, 0)
    (cells,) = ops.nonzero(ops.reshape(filled, (-1,)))
    mask = padding_attention_mask(ops.logical_and(filled, looked_up(visible, slots)))
    if causal:
        mask = ops.logical_and(mask, causal_attention_mask(ops.shape(slots)[1]))
    return RowGroup(slots, cells, mask)


def _looked_up(states: Any, rows: Any) -> Any:
    """Looks up distinct rows (m, W) of states (n, W)."""

    @own_gradient
    def forward(states: Any) -> Any:
        # TensorFlow's own gradient is an IndexedSlices, which a block that is recomputed, or one
        # with a custom gradient, does not accept.
        return looked_up(states, rows), lambda upstream: _scattered(
            upstream, rows, ops.shape(states)[0]
        )

    return forward(states)


def _scattered(states: Any, cells: Any, size: Any) -> Any:
    """Scatters states (n, W) to the rows `cells` of (size, W), zero elsewhere."""
    return ops.scatter(cells[:, None], states, (size, states.shape[-1]))


def _joined(pieces: Any) -> Any:
    pieces = list(pieces)
    return pieces[0] if len(pieces) == 1 else ops.concatenate(pieces, axis=0)
