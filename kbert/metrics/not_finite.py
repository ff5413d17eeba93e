"""The error about numbers that overflowed, which can be told from other errors by its class."""


class NotFiniteError(ValueError):
    """Numbers given to a metric are infinite or not a number."""
