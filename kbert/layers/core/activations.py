"""Activations by their names in configurations."""

import math
from collections.abc import Callable
from typing import Any

from keras import ops

from kbert.layers.core.custom_gradients import own_gradient

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "gelu": lambda x: ops.gelu(x, approximate=False),
    "gelu_approximate": lambda x: ops.gelu(x, approximate=True),
    "relu": ops.relu,
    "tanh": ops.tanh,
    "silu": ops.silu,
}


def activation_name(name: str | None) -> str | None:
    """Checks the name of an activation.

    Args:
        name: "gelu" (exact, with erf), "gelu_approximate" (with tanh), "relu", "tanh", "silu"
            or None.

    Returns:
        The name.

    Raises:
        ValueError: the name is unknown.
    """
    if name is not None and name not in _ACTIVATIONS:
        raise ValueError(
            f"`activation` must be one of {sorted(_ACTIVATIONS)} or None. "
            f"Received: activation={name!r}"
        )
    return name


def activate(x: Any, name: str | None, training: bool | None = None) -> Any:
    """Applies an activation.

    Args:
        x: float array of any shape.
        name: a name that `activation_name` accepts; None returns `x` unchanged.
        training: True uses the form with the cheaper backward pass; the values are the same.

    Returns:
        An array like `x`.
    """
    if name is None:
        return x
    if name == "gelu" and training:
        return _gelu_with_short_gradient(x)
    return _ACTIVATIONS[name](x)


@own_gradient
def _gelu_with_short_gradient(x: Any) -> Any:
    """Exact GELU, x Phi(x) (Hendrycks and Gimpel 2016), keeping Phi for the backward pass.

    The derivative Phi(x) + x phi(x) needs one exponential; differentiating the erf formula step by
    step takes nine passes over the widest activations of the network.
    """
    cdf = (ops.erf(x * math.sqrt(0.5)) + 1.0) * 0.5

    def gradient(*args: Any, upstream: Any = None) -> Any:
        """d gelu / dx times the upstream gradient."""
        (upstream,) = args if upstream is None else (upstream,)
        density = ops.exp(ops.square(x) * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))
        return upstream * (cdf + x * density)

    return x * cdf, gradient
