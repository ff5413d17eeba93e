"""The real tokens of a padded batch: what is computed where padding is left out.

Everything in an encoder but attention looks at one token alone. It may as well run over the real
tokens of a batch, one below the other; only attention needs them in rows, and there a few groups
of rows of like length need less padding than one.

Shapes: B batch, T length, R real tokens, W width; a group has b rows of at most t tokens, n in all.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from keras import ops

from kbert.layers.attention.masks import causal_attention_mask, padding_attention_mask
from kbert.layers.core.custom_gradients import own_gradient


class RowGroup(NamedTuple):
    """Rows of like length, as attention wants them: side by side, padded to their longest.

    Attributes:
        slots: int (b, t), which of the group's tokens stands in a cell; 0 in padding.
        cells: int (n,), in which of the b * t cells a token stands.
        mask: bool, broadcastable to (b, N, t, t), True = may attend.
    """

    slots: Any
    cells: Any
    mask: Any


@dataclass(frozen=True, eq=False)  # no tuple: Keras would look for tensors in it, and find numbers
class RealTokens:
    """Where the real tokens of a batch stand.

    A row without any keeps its first cell, so that every row has a state to read.

    Attributes:
        places: int (R,), in which of the B * T cells of the batch each stands.
        first: int (B,), which of them is the first of each row.
        last: int (B,), which is the last.
        shape: B and T, numbers where they are fixed and else int scalars.
        groups: the rows, divided; their tokens follow each other.
    """

    places: Any
    first: Any
    last: Any
    shape: tuple[Any, Any]
    groups: tuple[RowGroup, ...]

    def of(self, batch: Any) -> Any:
        """The values (R,) of the tokens, of (B, T) values that need no gradient."""
        return ops.take(ops.reshape(batch, (-1,)), self.places)

    def positions(self) -> Any:
        """The position (R,) of each token in its row."""
        return self.places % self.shape[1]

    def first_states(self, states: Any) -> Any:
        """The states (B, W) of the first token of each row, of (R, W)."""
        return _looked_up(states, self.first)

    def last_states(self, states: Any) -> Any:
        """The states (B, W) of the last token of each row, of (R, W)."""
        return _looked_up(states, self.last)

    def in_rows(self, states: Any) -> Any:
        """States (R, W) as a batch (B, T, W), zero in padding."""
        batch, length = self.shape
        rows = _scattered(states, self.places, batch * length)
        return ops.reshape(rows, (batch, length, states.shape[-1]))

    def in_groups(self, states: Any) -> tuple[Any, ...]:
        """States (R, W) as groups (b, t, W); a cell of padding has what some token has."""
        width = states.shape[-1]

        @own_gradient
        def forward(states: Any) -> Any:
            pieces = self._pieces(states)
            grids = tuple(ops.take(p, g.slots, axis=0) for p, g in zip(pieces, self.groups))

            # Padding is nobody's key and nobody reads its queries: its gradients are 0, and what
            # would be a sum over all cells of a token is a look-up of its own one.
            def backward(*upstream: Any) -> Any:
                return _joined(
                    ops.take(ops.reshape(of_grid, (-1, width)), group.cells, axis=0)
                    for of_grid, group in zip(upstream, self.groups)
                )

            return grids, backward

        return tuple(forward(states))

    def from_groups(self, grids: tuple[Any, ...]) -> Any:
        """Groups (b, t, W) as states (R, W)."""
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
        """The states of each group."""
        pieces, start = [], 0
        for group in self.groups:
            end = start + ops.shape(group.cells)[0]
            pieces.append(states[start:end])
            start = end
        return pieces


def real_tokens(padding_mask: Any, causal: bool = False, groups: int = 1) -> RealTokens:
    """Finds the real tokens of a batch.

    Their number is known only when it runs: nothing for XLA, where all shapes must be fixed.

    Args:
        padding_mask: bool (B, T), True for a real token, in any pattern.
        causal: whether each position sees itself and what came before alone.
        groups: into how many groups of like length the rows are divided for attention.
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
    rank = order if groups == 1 else ops.argsort(order)  # where each row of the batch has gone
    visible, start, made = ops.take(ops.reshape(real, (-1,)), places), 0, []
    for index in range(groups):
        some = counts[batch * index // groups : batch * (index + 1) // groups]
        end = start + ops.sum(some)
        made.append(_group(some, visible[start:end], causal))
        start = end
    first, last = ops.take(ends - counts, rank), ops.take(ends - 1, rank)
    return RealTokens(places, first, last, (batch, length), tuple(made))


def _group(counts: Any, visible: Any, causal: bool) -> RowGroup:
    """The group of the rows with so many tokens each, (b,), of whom some are seen, (n,)."""
    columns = ops.arange(ops.max(counts, initial=0))
    filled = columns < counts[:, None]  # (b, t)
    slots = ops.where(filled, (ops.cumsum(counts) - counts)[:, None] + columns, 0)
    (cells,) = ops.nonzero(ops.reshape(filled, (-1,)))
    mask = padding_attention_mask(ops.logical_and(filled, ops.take(visible, slots)))
    if causal:
        mask = ops.logical_and(mask, causal_attention_mask(ops.shape(slots)[1]))
    return RowGroup(slots, cells, mask)


def _looked_up(states: Any, rows: Any) -> Any:
    """Different rows (m, W) of states (n, W)."""

    @own_gradient
    def forward(states: Any) -> Any:
        # TensorFlow's own gradient is a list of rows, which a block that is computed again, or one
        # that writes out its own gradient, does not take.
        return ops.take(states, rows, axis=0), lambda upstream: _scattered(
            upstream, rows, ops.shape(states)[0]
        )

    return forward(states)


def _scattered(states: Any, cells: Any, size: Any) -> Any:
    """States (n, W) at their cells of (size, W), zero elsewhere."""
    return ops.scatter(cells[:, None], states, (size, states.shape[-1]))


def _joined(pieces: Any) -> Any:
    pieces = list(pieces)
    return pieces[0] if len(pieces) == 1 else ops.concatenate(pieces, axis=0)
