"""Length penalties: divisors of log-probabilities, so that short hypotheses do not always win."""

from dataclasses import dataclass
from typing import Any

from keras import ops


@dataclass(frozen=True)
class GnmtPenalty:
    """((5 + n) / 6)^alpha for n tokens, the end token included (Wu et al. 2016, equation 14).

    Attributes:
        alpha: 0 for none; 0.6 to 1 are usual.
    """

    alpha: float

    def __call__(self, length: Any) -> Any:
        """Returns the penalty, float32, of lengths n of any shape."""
        return ops.power((ops.cast(length, "float32") + 5.0) / 6.0, self.alpha)


@dataclass(frozen=True)
class PowerPenalty:
    """n^alpha for n tokens, the end token included: fairseq's and CTranslate2's.

    Attributes:
        alpha: 0 for none; 1 is the mean log-probability of a token.
    """

    alpha: float

    def __call__(self, length: Any) -> Any:
        """Returns the penalty, float32, of lengths n of any shape."""
        return ops.power(ops.cast(length, "float32"), self.alpha)


LENGTH_PENALTIES: dict[str, Any] = {"gnmt": GnmtPenalty, "power": PowerPenalty}


def length_penalty(name: str, alpha: float) -> Any:
    """Returns a length penalty by name.

    Args:
        name: "gnmt" or "power".
        alpha: its exponent.

    Raises:
        ValueError: the name is unknown.
    """
    if name not in LENGTH_PENALTIES:
        raise ValueError(
            f"`name` must be one of {sorted(LENGTH_PENALTIES)}. Received: name={name!r}"
        )
    return LENGTH_PENALTIES[name](alpha)
