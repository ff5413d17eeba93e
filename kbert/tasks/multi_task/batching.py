"""Batches whose rows are of several tasks."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from kbert.data.batches.mixtures import Mixture, mixed_dataset, mixture
from kbert.pipelines.batching import EVALUATION_TOKENS, Batching


class MixedBatching(Batching):
    """Batches whose rows are of several tasks, for a `MultiTaskModel`."""

    def text_batches(self, x: Any, y: Any = None, **cut: Any) -> Any:
        if isinstance(x, tf.data.Dataset):
            return None
        for name, given in (("x", x), ("y", y)):
            if not isinstance(given, dict) or set(given) != set(self.model.models):
                received = sorted(given) if isinstance(given, dict) else type(given).__name__
                known = ", ".join(self.model.models)
                raise ValueError(
                    f"`{name}` must be a dict of the tasks {known}. Received: {received}"
                )
        mixed = self.mixed({name: (x[name], y[name]) for name in self.model.models})
        sizes = cut or {"batch_size": None, "batch_tokens": EVALUATION_TOKENS}
        return self.dataset(mixed, **sizes)

    def mixed(self, texts: Mapping[str, tuple[Any, Any]]) -> Mixture:
        """Tokenizes texts and targets of each task.

        Raises:
            ValueError: those of a task are wrong; the message names it.
        """
        found = {}
        for name, (x, y) in texts.items():
            batching = self.model.models[name].batching
            try:
                found[name] = batching.as_columns(*batching.training_examples(x, y))
            except (TypeError, ValueError) as error:
                raise type(error)(f"task {name!r}: {error}") from error
        return mixture(found)

    def dataset(self, packed: Mixture, targets: Any = None, **kwargs: Any) -> tf.data.Dataset:
        """Returns batches of a `Mixture`, by the model's sampling where they are shuffled."""
        sampling = self.model.sampler if kwargs.pop("shuffle", False) else None
        return mixed_dataset(packed, sampling, self.model.annealing_epochs, **kwargs)

    def predict(self, x: Any, **kwargs: Any) -> dict[str, Any]:
        """Predicts the texts of some of the tasks, each with its own model."""
        if not isinstance(x, dict) or not set(x) <= set(self.model.models):
            received = sorted(map(str, x)) if isinstance(x, dict) else type(x).__name__
            known = ", ".join(self.model.models)
            raise ValueError(f"`x` must be a dict by some of {known}. Received: {received}")
        found = {}
        for name, texts in x.items():
            with self.model.alone(name) as model:
                found[name] = model.predict(texts, **kwargs)
        return found
