"""The hyperparameters of an encoder under kbert's names, and their validation."""

import difflib
from collections.abc import Mapping
from typing import Any

CONFIG_KEYS = (
    "vocabulary_size",
    "hidden_dim",
    "num_layers",
    "num_heads",
    "intermediate_dim",
    "max_sequence_length",
    "num_segments",
    "dropout",
    "attention_dropout",
    "activation",
    "layer_norm_epsilon",
    "initializer_range",
)
# Optional, False by default: each position sees only itself and what came before.
CAUSAL = "causal"
_SIZES = CONFIG_KEYS[:7]
_RATES = ("dropout", "attention_dropout")
_POSITIVE = ("layer_norm_epsilon", "initializer_range")


def check_config(
    config: Mapping[str, Any], source: str, more_sizes: tuple[str, ...] = ()
) -> None:
    """Checks that a configuration has all known keys, no other ones, and valid values.

    Args:
        config: Hyperparameters under kbert's names.
        source: The origin that errors name, for example a file.
        more_sizes: The sizes that an architecture has beside those of BERT.

    Raises:
        ValueError: A key is missing, unknown (the message names the nearest known one) or invalid.
    """
    keys = (*CONFIG_KEYS, *more_sizes)
    for key in config:
        if key not in (*keys, CAUSAL):
            near = difflib.get_close_matches(key, (*keys, CAUSAL), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"{source}: the configuration must have only the keys {', '.join(keys)}."
                f" Received: {key!r}.{hint}"
            )
    missing = [key for key in keys if key not in config]
    if missing:
        raise ValueError(f"{source}: the configuration must have {', '.join(missing)}.")
    for key in (*_SIZES, *more_sizes):
        # bool is a subclass of int in Python, and no size.
        if type(config[key]) is not int or config[key] < 1:
            raise _bad_value(source, key, "a positive whole number", config[key])
    for key in _RATES:
        if not _is_number(config[key]) or not 0 <= config[key] < 1:
            raise _bad_value(source, key, "a number in [0, 1)", config[key])
    for key in _POSITIVE:
        if not _is_number(config[key]) or config[key] <= 0:
            raise _bad_value(source, key, "a positive number", config[key])
    if not isinstance(config["activation"], str):
        raise _bad_value(source, "activation", "a name", config["activation"])
    if type(config.get(CAUSAL, False)) is not bool:
        raise _bad_value(source, CAUSAL, "true or false", config[CAUSAL])
    if config["hidden_dim"] % config["num_heads"]:
        raise ValueError(
            f"{source}: `hidden_dim` must be a multiple of `num_heads`. Received: "
            f"hidden_dim={config['hidden_dim']}, num_heads={config['num_heads']}"
        )


def _is_number(value: Any) -> bool:
    """Returns whether `value` is a JSON number (a bool is not)."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _bad_value(source: str, key: str, wanted: str, value: Any) -> ValueError:
    """Makes the error for an invalid value."""
    return ValueError(f"{source}: `{key}` must be {wanted}. Received: {key}={value!r}")
