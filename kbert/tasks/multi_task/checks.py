"""Checks of what several tasks are trained with together."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from kbert.data.batches.mixtures import Sampling, is_positive

_MEANS = ("sum_over_batch_size", "mean")


def check_models(models: Mapping[str, Any]) -> None:
    """Raises a ValueError unless several models can train one encoder together."""
    if not isinstance(models, Mapping) or len(models) < 2:
        raise ValueError(
            "`models` must be a dict of two models or more by the names of their tasks. Received: "
            f"{list(models) if isinstance(models, Mapping) else type(models).__name__}"
        )
    first_name, first = next(iter(models.items()))
    for name, model in models.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(
                "the names in `models` must be made of letters, digits and `_`, and begin with no "
                f"digit. Received: {name!r}"
            )
        if not hasattr(model, "read_outputs"):
            raise ValueError(
                "`models` must read one sequence of token ids a row. Received: a "
                f"{type(model).__name__} as {name!r}"
            )
        if model.encoder is not first.encoder:
            raise ValueError(
                "`models` must be made on the same encoder object. Received: another one for "
                f"{name!r} than for {first_name!r}"
            )
        own, other = (repr(one.tokenizer.get_config()) for one in (model, first))
        if own != other:
            raise ValueError(
                "`models` must have equal tokenizers. Received: another one for "
                f"{name!r} than for {first_name!r}"
            )


def sampler_of(given: Any, temperature: float, names: list[str]) -> Sampling:
    """Returns the sampling of a name, or of a share for each task; else it is a ValueError."""
    if isinstance(given, str):
        return Sampling(given, temperature)
    if not isinstance(given, Mapping) or set(given) != set(names):
        received = sorted(given) if isinstance(given, Mapping) else repr(given)
        raise ValueError(
            f"`sampling` must be a name, or have a number above 0 for each of {', '.join(names)}. "
            f"Received: {received}"
        )
    return Sampling(temperature=temperature, weights=tuple(given[name] for name in names))


def check_compiled(name: str, loss: Any, metrics: Any) -> None:
    """Raises a ValueError unless loss and metrics of a task are objects that its rows can have."""
    if not isinstance(loss, keras.losses.Loss) or loss.reduction not in _MEANS:
        raise ValueError(
            "`loss` must have Keras losses that are means over a batch. Received: "
            f"loss[{name!r}]={loss!r:.100}"
        )
    if not all(isinstance(metric, keras.metrics.Metric) for metric in metrics):
        raise ValueError(
            "`metrics` must have lists of Keras metrics, no names. Received: "
            f"metrics[{name!r}]={metrics!r:.100}"
        )


def named_metric(metric: Any, task: str) -> Any:
    """Returns a metric of its own like another one, whose name begins with that of a task."""
    return type(metric).from_config({**metric.get_config(), "name": f"{task}_{metric.name}"})


def check_names(models: Mapping[str, Any], **given: Any) -> None:
    """Raises a ValueError if a dict by names of tasks has others."""
    for argument, values in given.items():
        unknown = sorted(set(values or {}) - set(models))
        if unknown:
            raise ValueError(
                f"`{argument}` must be a dict by some of the tasks {', '.join(models)}. "
                f"Received: {', '.join(unknown)}"
            )


def weights_of(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    """Returns the weight of each task, 1 where none is given; a ValueError if one is no number."""
    found = dict.fromkeys(names, 1.0)
    for name, weight in given.items():
        if name not in names or not is_positive(weight):
            raise ValueError(
                f"`loss_weights` must have numbers above 0 for some of {', '.join(names)}. "
                f"Received: loss_weights[{name!r}]={weight!r}"
            )
        found[name] = float(weight)
    return found
