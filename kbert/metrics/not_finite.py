"""The error about numbers that overflowed, with a class of its own so that callers can catch it."""


class NotFiniteError(ValueError):
    """A number given to a metric is not finite."""
