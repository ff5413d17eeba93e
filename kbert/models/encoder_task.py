"""Base class of tasks on top of an encoder: compiling, saving and loading."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
from keras import ops, tree

from kbert.optimization.adamw import AdamW
from kbert.optimization.replicas import whole_batch_loss


class EncoderTask(keras.Model):
    """A model with an `encoder` and a head, and a task's own loss and metrics as defaults."""

    def compile(
        self, optimizer: Any = None, loss: Any = None, metrics: Any = None, **kwargs: Any
    ) -> None:
        """Compiles the model; the defaults are the task's own optimizer, loss and metrics."""
        super().compile(
            optimizer=self.default_optimizer() if optimizer is None else optimizer,
            loss=self.default_loss() if loss is None else loss,
            metrics=self.default_metrics() if metrics is None else metrics,
            **kwargs,
        )

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded model like the saved one; Keras needs it where `compile` is overridden.

        Args:
            config: from `get_compile_config`.
        """
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)  # so that its state can be loaded

    def make_train_function(self, force: bool = False) -> Any:
        """Builds the optimizer first, otherwise TensorFlow would trace the function twice."""
        if not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Computes Keras' loss, of the whole batch where several replicas share one."""
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        return whole_batch_loss(loss, ops.shape(tree.flatten(y_pred)[0])[0])

    def default_loss(self) -> Any:
        """Returns the task's loss."""
        raise NotImplementedError(f"{type(self).__name__} must say its loss")

    def head_layers(self) -> dict[str, Any]:
        """Returns the layers of the head by the names that their weights are saved under.

        Each has no other weights than `kernel`, `bias`, `gamma` and `beta`, as `Linear` has. Names
        that Hugging Face has for such a layer make its checkpoints fit.
        """
        raise NotImplementedError(f"{type(self).__name__} must name the layers of its head")

    def default_optimizer(self) -> Any:
        """Returns AdamW with its default learning rate."""
        return AdamW()

    def default_metrics(self) -> list[Any]:
        """Returns the metrics that are reported during training."""
        return []

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Makes the model of a configuration from `get_config`."""
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(**{**config, "encoder": encoder})


@contextmanager
def configured(cls: type) -> Iterator[None]:
    """Replaces a TypeError, to whose message Keras adds the config, by a ValueError without it.

    A configuration holds a vocabulary: the message would be hundreds of kilobytes long.

    Args:
        cls: the class whose `from_config` runs within.

    Raises:
        ValueError: the configuration does not fit the class.
    """
    try:
        yield
    except TypeError as error:
        raise ValueError(
            f"`config` must fit {cls.__name__}. Received: one with which it fails: {error!s:.300}"
        ) from None
