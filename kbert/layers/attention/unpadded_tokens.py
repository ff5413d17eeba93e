"""The real tokens of a padded batch, for computation without padding.

Everything in an encoder but attention looks at one token alone. It may as well run over the real
tokens of a batch, concatenated; only attention needs them in rows, and there a few groups of rows
of similar length need less padding than one.

Shapes: B batch, T length, R real tokens, W width; a group has b rows of at most t tokens, n in all.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from keras import ops

from kbert.layers.attention.masks import causal_attention_mask, padding_attention_mask
from kbert.layers.core.custom_gradients import own_gradient


class RowGroup(NamedTuple):
    """Rows of similar length, as attention needs them: padded to the longest of them.

    Attributes:
        slots: int (b, t), the index in the group of each position's token; 0 at padded positions.
        cells: int (n,), the index of each token among the b * t positions.
        mask: bool, broadcastable to (b, N, t, t), True = may attend.
    """

    slots: Any
    cells: Any
    mask: Any


@dataclass(frozen=True, eq=False)  # no tuple: Keras would look for tensors in it, and find numbers
class UnpaddedTokens:
    """Positions of the real tokens of a batch.

    A row without any keeps its first position, so that every row has a state to read.

    Attributes:
        places: int (R,), the index of each token among the B * T positions of the batch.
        first: int (B,), the index of the first token of each row among the R tokens.
        last: int (B,), the index of the last one.
        shape: B and T, numbers where they are static, otherwise int scalars.
        groups: the rows, divided; the R tokens are ordered by group.
    """

    places: Any
    first: Any
    last: Any
    shape: tuple[Any, Any]
    groups: tuple[RowGroup, ...]

    def of(self, batch: Any) -> Any:
        """Returns the values (R,) of the tokens from (B, T) values that need no gradient."""
        return ops.take(ops.reshape(batch, (-1,)), self.places)

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
            grids = tuple(ops.take(p, g.slots, axis=0) for p, g in zip(pieces, self.groups))

            # Padding is masked as a key and its queries are not read: its gradients are 0, and what
            # would be a sum over all positions that hold a token is a look-up of its own one.
            def backward(*upstream: Any) -> Any:
                return _joined(
                    ops.take(ops.reshape(of_grid, (-1, width)), group.cells, axis=0)
                    for of_grid, group in zip(upstream, self.groups)
                )

            return grids, backward

        return tuple(forward(states))

    def from_groups(self, grids: tuple[Any, ...]) -> Any:
        """Returns groups (b, t, W) as states (R, W)."""
        width = grids[0].shape[-1]

        @own_gradient
        def forward(*grids: Any) -> Any:
            flat = [ops.reshape(grid, (-1, width)) for grid in grids]
            states = _joined(ops.take(f, g.cells, axis=0) for f, g in zip(flat, self.groups))

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
        pieces, start = [], 0
        for group in self.groups:
            end = start + ops.shape(group.cells)[0]
            pieces.append(states[start:end])
            start = end
        return pieces


def unpadded_tokens(padding_mask: Any, causal: bool = False, groups: int = 1) -> UnpaddedTokens:
    """Finds the real tokens of a batch.

    Their number is known only at run time: not for XLA, where all shapes must be static.

    Args:
        padding_mask: bool (B, T), True for a real token, in any pattern.
        causal: whether each position sees only itself and what came before.
        groups: number of groups of similar length that the rows are divided into for attention.
    """
    real = ops.cast(padding_mask, "bool")
    batch, length = ops.shape(real)[0], ops.shape(real)[1]
    kept = ops.logical_or(real, ops.arange(length) == 0)
    counts = ops.sum(ops.cast(kept, "int32"), axis=1)  # (B,)
    order = ops.arange(batch) if groups == 1 else ops.argsort(-counts)
    order = ops.cast(order, "int32")
    row, column = ops.nonzero(ops.take(kept, order, axis=0))
    places = ops.take(order, row) * length + column
    counts = ops.take(counts, order)
    ends = ops.cumsum(counts)
    rank = order if groups == 1 else ops.argsort(order)  # the new index of each row of the batch
    visible, start, made = ops.take(ops.reshape(real, (-1,)), places), 0, []
    for index in range(groups):
        some = counts[batch * index // groups : batch * (index + 1) // groups]
        end = start + ops.sum(some)
        made.append(_group(some, visible[start:end], causal))
        start = end
    first, last = ops.take(ends - counts, rank), ops.take(ends - 1, rank)
    return UnpaddedTokens(places, first, last, (batch, length), tuple(made))


def _group(counts: Any, visible: Any, causal: bool) -> RowGroup:
    """Makes the group of rows with `counts` (b,) tokens; `visible` (n,) marks the real ones."""
    columns = ops.arange(ops.max(counts, initial=0))
    filled = columns < counts[:, None]  # (b, t)
    slots = ops.where(filled, (ops.cumsum(counts) - counts)[:, None] + columns, 0)
    (cells,) = ops.nonzero(ops.reshape(filled, (-1,)))
    mask = padding_attention_mask(ops.logical_and(filled, ops.take(visible, slots)))
    if causal:
        mask = ops.logical_and(mask, causal_attention_mask(ops.shape(slots)[1]))
    return RowGroup(slots, cells, mask)


def _looked_up(states: Any, rows: Any) -> Any:
    """Looks up distinct rows (m, W) of states (n, W)."""

    @own_gradient
    def forward(states: Any) -> Any:
        # TensorFlow's own gradient is an IndexedSlices, which a block that is recomputed, or one
        # with a custom gradient, does not accept.
        return ops.take(states, rows, axis=0), lambda upstream: _scattered(
            upstream, rows, ops.shape(states)[0]
        )

    return forward(states)


def _scattered(states: Any, cells: Any, size: Any) -> Any:
    """Scatters states (n, W) to the rows `cells` of (size, W), zero elsewhere."""
    return ops.scatter(cells[:, None], states, (size, states.shape[-1]))


def _joined(pieces: Any) -> Any:
    pieces = list(pieces)
    return pieces[0] if len(pieces) == 1 else ops.concatenate(pieces, axis=0)
