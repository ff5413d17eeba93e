"""Export of several tasks that share a frozen encoder, whose weights are stored once."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kbert.models.weights import ADAPTER, POOLER, named_weights
from kbert.serving.export.export import (
    check_arguments,
    described,
    endpoints_of,
    write_export,
)
from kbert.serving.format.batching_file import MAX_BATCH_SIZE
from kbert.serving.format.signatures import SERVING_DEFAULT
from kbert.serving.precision.conversion import in_precision
from kbert.serving.precision.substitutes import WeightSubstitutes

_TASK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SHOWN = 5


def export_together(
    models: Mapping[str, Any],
    base: str | os.PathLike[str],
    name: str = "tasks",
    version: int | None = None,
    *,
    max_batch_size: int = MAX_BATCH_SIZE,
    keep: int | None = None,
    about: Mapping[str, Any] | None = None,
    precision: str | None = None,
) -> Path:
    """Writes one SavedModel for several tasks, with a signature for each.

    The encoder that the models share is stored once; each has its own head, pooler and adapters
    (with the LayerNorms that are trained with these), where they differ.

    Args:
        models: The name of each task, which becomes the name of its signature, -> a model with an
            `encoder`. The first is "serving_default" too. The models are not changed.
        base: The folder of all models.
        name: The name of the export on the server.
        version: An integer of at least 1; one more than the highest existing one by default.
        max_batch_size: The most rows of a batch, to which the graph joins requests that meet; 0
            for none.
        keep: Number of the highest versions to keep; None for all.
        about: Facts about the training for the model card.
        precision: "float32", "bfloat16" or "int8"; None for the models' own.

    Returns:
        The version folder.

    Raises:
        TypeError: `models` is no mapping, a model has no `signatures()`, or `base` is no path.
        ValueError: A name, the version or a number is invalid, or the encoders differ: the message
            says in which weights.
        FileExistsError: The version exists already.
    """
    _check_names(models)
    check_arguments(base, name, version, max_batch_size, keep)
    written: dict[str, Any] = {}
    for task, model in models.items():
        written[task] = in_precision(model, precision, next(iter(written.values()), None))
    substitutes = WeightSubstitutes(written.values())
    share_encoder(written, substitutes)
    substitutes.store_small(precision)
    with _one_tokenizer(written):
        model = Together(name, written)
        return write_export(model, substitutes, base, name, version, max_batch_size, keep, about)


class Together:
    """Several models with the interface of one, for an export: name of each task -> model."""

    def __init__(self, name: str, models: Mapping[str, Any]) -> None:
        self.name = name
        self.models_by_signature = dict(models)
        self.compute_dtype = next((str(m.compute_dtype) for m in models.values()), "float32")
        # In JSON types, for the metadata.
        self.tasks = {k: {"class": type(m).__name__, **described(m)} for k, m in models.items()}

    def signatures(self) -> dict[str, Any]:
        """Returns the main function of each task and the specs of its inputs."""
        models = self.models_by_signature
        return {task: model.signatures()[SERVING_DEFAULT] for task, model in models.items()}


def share_encoder(models: Mapping[str, Any], substitutes: WeightSubstitutes) -> None:
    """Replaces the encoders of the other models by that of the first, and records it.

    Only adapters and the pooler may differ.
    """
    first, *others = models
    kept = named_weights(models[first].encoder)
    for name in others:
        found = named_weights(models[name].encoder)
        same = {w for w in found if w in kept and _equal(kept[w], found[w])}
        different = [
            weight
            for weight in dict.fromkeys((*kept, *found))
            if weight not in same
            # The pooler belongs to the head: only some tasks have a use for it.
            and not weight.startswith((POOLER, ADAPTER))
        ]
        if different:
            more = f" and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
            raise ValueError(
                "`models` must share one frozen encoder: only heads, poolers and adapters may "
                f"differ. Received: {name!r} differs from {first!r} in {len(different)} of "
                f"{len(found)} weights: {', '.join(different[:_SHOWN])}{more}"
            )
        for weight in same:
            substitutes.share(found[weight], kept[weight])


def _equal(one: Any, other: Any) -> bool:
    same = one.shape == other.shape and one.dtype == other.dtype
    return same and bool(np.array_equal(np.asarray(one), np.asarray(other)))


def _check_names(models: Mapping[str, Any]) -> None:
    if not isinstance(models, Mapping):
        raise TypeError(
            "`models` must be a mapping, the name of each task -> its model. "
            f"Received: {type(models).__name__}"
        )
    if not models:
        raise ValueError("`models` must hold at least one model. Received: none")
    for name, model in models.items():
        if not _TASK_NAME.fullmatch(name) or name == SERVING_DEFAULT:
            raise ValueError(
                "the names in `models` must begin with a letter and be made of letters, digits and "
                f"`_`, and none be {SERVING_DEFAULT!r}. Received: {name!r}"
            )
        has_default = SERVING_DEFAULT in endpoints_of(model)
        if getattr(model, "encoder", None) is None or not has_default:
            raise ValueError(
                "`models` must hold models on raw texts with an `encoder`. Received: "
                f"{type(model).__name__} as {name!r}"
            )


@contextmanager
def _one_tokenizer(models: Mapping[str, Any]) -> Iterator[None]:
    """Lets models with equal tokenizers share one meanwhile, so that the graph has one table."""
    own = {name: model.tokenizer for name, model in models.items()}
    kept: dict[str, Any] = {}
    try:
        for model in models.values():
            config = repr(model.tokenizer.get_config())
            model.tokenizer = kept.setdefault(config, model.tokenizer)
        yield
    finally:
        for name, model in models.items():
            model.tokenizer = own[name]
