"""Which pass over a dataset goes on."""

from itertools import count


class Epochs:
    """Numbers the passes over a dataset.

    They are counted, unless somebody tells the number. Keras makes iterators that it never reads; a
    count holds only as long as these do not start, and begins anew in a process that goes on.

    Args:
        first: number of the first pass.

    Attributes:
        told: the number of the pass that begins next, or None to count.
    """

    def __init__(self, first: int = 0) -> None:
        self._count = count(first)
        self.told: int | None = None

    def begin(self) -> int:
        """The number of the pass that begins now."""
        return next(self._count) if self.told is None else self.told
