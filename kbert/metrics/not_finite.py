"""The error about numbers that overflowed, which can be told from other errors by its class."""


class NotFiniteError(ValueError):
    """What a metric was given as numbers is not finite."""
