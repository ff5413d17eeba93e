"""Several tasks on one encoder, trained together; each stays a model of its own."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from kbert.data.batches.mixtures import PROPORTIONAL, TASK_IDS
from kbert.optimization.losses import over_replicas, whole_batch_loss
from kbert.optimization.sequence_losses import counting_tokens
from kbert.pipelines.task_model import TaskModel
from kbert.storage.files import atomic_directory
from kbert.tasks.multi_task.batching import MixedBatching
from kbert.tasks.multi_task.checks import (
    check_compiled,
    check_models,
    check_names,
    named_metric,
    sampler_of,
    weights_of,
)


@keras.saving.register_keras_serializable("kbert")
class MultiTaskModel(TaskModel):
    """Several tasks that train one encoder together (MT-DNN, Liu et al. 2019).

    A batch has rows of all tasks, in lengths alike; the encoder sees it once, and each task's head
    reads it. With n_k of the B rows of a batch of task k, and its own loss L_k on them, the loss is
    sum_k w_k (n_k / B) L_k. The models share the encoder's weights, and each can be used, saved
    and exported by itself, before and after.

    Args:
        models: the models of the tasks by their names, all on the same `encoder` object: of
            classes, several labels, numbers, tags of tokens or answer spans.
        sampling: how often each task is drawn, "proportional", "square-root", "temperature" or
            "annealed", see `kbert.data.batches.mixtures.Sampling`; or a share for each task.
        temperature: of "temperature".
        loss_weights: w_k by the names of the tasks, 1 where none is given.
        adapter: settings as `add_adapter` takes them, for a new adapter for each task, called as
            that, which trains beside the encoder (Stickland and Murray 2019); or None.
        **kwargs: arguments of `keras.Model`.

    Attributes:
        models: the models by their names.
        annealing_epochs: the epochs over which "annealed" goes; `fit` sets them.

    Raises:
        ValueError: there are fewer than two models, one has another encoder or tokenizer, or more
            than one sequence a row; or a weight is no number above 0.
    """

    batching_type = MixedBatching
    arguments = ("sampling", "temperature", "loss_weights")

    def __init__(
        self,
        models: Mapping[str, Any],
        sampling: str | Mapping[str, float] = PROPORTIONAL,
        temperature: float = 2.0,
        loss_weights: Mapping[str, float] | None = None,
        adapter: Any = None,
        **kwargs: Any,
    ) -> None:
        check_models(models)
        super().__init__(**kwargs)
        self.models = dict(models)
        first = next(iter(models.values()))
        self.encoder, self.tokenizer = first.encoder, first.tokenizer
        self.max_sequence_length = max(model.max_sequence_length for model in models.values())
        self.sampler = sampler_of(sampling, temperature, list(models))
        self.sampling = sampling if isinstance(sampling, str) else dict(sampling)
        self.temperature = temperature
        self.loss_weights = weights_of(loss_weights or {}, list(models))
        if adapter is not None:
            for name in models:
                self.encoder.add_adapter(name, adapter)
            self.encoder.route_adapters(list(models))
        self.has_adapters = bool(getattr(self.encoder, "has_routed_adapters", False))
        self.annealing_epochs = 1
        self.task_losses: dict[str, Any] = {}
        self.task_metrics: dict[str, Any] = {}
        self.loss_means: dict[str, Any] = {}
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> dict[str, Any]:
        """Maps the inputs of `Bert` to the outputs of each task for all rows, by its name.

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent; and `task_ids` int (B,), the place of a
                row's task, which is read where each has an adapter.
            training: whether dropout is on.
        """
        left_out = () if self.has_adapters else (TASK_IDS,)
        read = {name: column for name, column in inputs.items() if name not in left_out}
        states = self.encoder(read, training=training)
        return {
            name: model.read_outputs(states, read, training) for name, model in self.models.items()
        }

    @contextmanager
    def alone(self, name: str) -> Iterator[Any]:
        """Has the model of one task, with its own adapter, for as long as the block runs.

        Args:
            name: the task's name.
        """
        if self.has_adapters:
            self.encoder.set_active_adapters(name)
        try:
            yield self.models[name]
        finally:
            if self.has_adapters:
                self.encoder.route_adapters(list(self.models))

    def default_loss(self) -> Any:
        """Returns None: each task has its own, see `compile`."""
        return None

    def default_metrics(self) -> Any:
        """Returns None: each task has its own, see `compile`."""
        return None

    def compile(
        self,
        optimizer: Any = None,
        loss: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        jit_compile: Any = None,
        **kwargs: Any,
    ) -> None:
        """Prepares the model for training, within the strategy's scope if there is one.

        Args:
            optimizer: a Keras optimizer or its name; None for AdamW.
            loss: Keras losses by the names of tasks; the others have their own.
            metrics: lists of Keras metrics by the names of tasks; the others have their own.
            jit_compile: True for XLA.
            **kwargs: further arguments of Keras' `compile`.

        Raises:
            ValueError: there is no such task, or what `TaskModel.compile` raises.
        """
        check_names(self.models, loss=loss, metrics=metrics)
        self._has_own_losses = bool(loss or metrics)
        losses = {n: (loss or {}).get(n) or m.default_loss() for n, m in self.models.items()}
        for name, model in self.models.items():
            check_compiled(name, losses[name], (metrics or {}).get(name) or [])
            model.note_compiled([(loss or {}).get(name), (metrics or {}).get(name), None])
        for old in (*self.task_metrics.values(), self.task_metrics, self.loss_means):
            old.clear()  # Keras forgets what is taken out
        with self.replication.compiling(optimizer, list(losses.values())):
            self.task_losses = losses
            self.task_metrics = {
                name: [named_metric(one, name) for one in (metrics or {}).get(name, own)]
                for name, model in self.models.items()
                for own in [model.default_metrics()]
            }
            self.loss_means = {n: keras.metrics.Mean(name=f"{n}_loss") for n in self.models}
        super().compile(optimizer, None, None, jit_compile, **kwargs)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        **kwargs: Any,
    ) -> Any:
        """Runs `TaskModel.fit` on texts and targets of all tasks; returns Keras' history.

        Args:
            x: a dict of raw texts by the names of the tasks, each in the forms that the task takes;
                or a dataset of batches.
            y: a dict of targets by the names of the tasks.
            batch_size: examples a batch, of all tasks together.
            epochs: passes, each of as many examples as all tasks have together.
            verbose: 0 is silent, 1 draws a bar, 2 prints a line an epoch; "auto" is 1 as a rule.
            **kwargs: further arguments of `TaskModel.fit`, such as `batch_tokens`, `seed`, or
                `validation_data`, a pair of such dicts.

        Raises:
            ValueError: texts or targets of a task are missing, or do not fit it.
        """
        for name in ("class_weight", "validation_split"):
            if kwargs.get(name):
                raise ValueError(
                    f"`{name}` must be left out where several tasks train together. Received: "
                    f"{name}={kwargs[name]!r}"
                )
        if not isinstance(x, tf.data.Dataset):
            self.annealing_epochs = epochs
        return super().fit(x, y, batch_size, epochs, verbose, **kwargs)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Computes the loss of all tasks, and takes the mean of each over its examples.

        Raises:
            ValueError: there are weights of examples, as a dataset may have.
        """
        if sample_weight is not None:
            raise ValueError(
                "`sample_weight` must be None where several tasks train together, which have no "
                f"weights. Received: {sample_weight!r:.80}"
            )
        rows = ops.shape(x[TASK_IDS])[0]
        size = ops.cast(rows, "float32")
        total = sum(self.losses) / self.replication.replicas  # of regularization, in each alike
        for number, (name, loss) in enumerate(self.task_losses.items()):
            own = ops.cast(ops.equal(x[TASK_IDS], number), "float32")
            target, found = self.models[name].targets_of_loss(y[name], y_pred[name])
            value = loss(target, found, sample_weight=own)
            count, among = ops.sum(own), value * size * self.replication.replicas
            if getattr(loss, "per", None) == "token":  # a mean over tokens, not over rows
                tokens = ops.sum(ops.cast(counting_tokens(target), "float32"))
                every, all_rows, all_tokens = over_replicas(count, size, tokens)
                value = value * every / ops.maximum(all_rows, 1.0)
                count, among = tokens, among * all_tokens / ops.maximum(all_rows, 1.0)
            mean = among / ops.maximum(count, 1.0)
            self.loss_means[name].update_state(mean, sample_weight=count)
            total = total + self.loss_weights[name] * value
        return whole_batch_loss(total, rows)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Updates the metrics of each task by its own rows, and returns all by their names."""
        for number, (name, metrics) in enumerate(self.task_metrics.items()):
            own = ops.cast(ops.equal(x[TASK_IDS], number), "float32")
            target, found = self.models[name].targets_of_loss(y[name], y_pred[name])
            for metric in metrics:
                metric.update_state(target, found, sample_weight=own)
        return self.get_metrics_result()

    def save_pretrained(
        self, directory: str | os.PathLike[str], format: str = "kbert", overwrite: bool = False
    ) -> Path:
        """Writes each task's model into a folder of its name, whole by itself.

        Args:
            directory: the directory to create; it is returned.
            format: one that all of the models have.
            overwrite: whether an existing directory may be replaced, with all that it holds.

        Raises:
            ValueError: the format is unknown or cannot hold a model.
            FileExistsError: the directory exists, and may not be replaced.
        """
        with atomic_directory(directory, overwrite, ("*/*.safetensors",)) as folder:
            for name in self.models:
                with self.alone(name) as model:
                    model.save_pretrained(folder / name, format)
        return Path(directory)

    def get_config(self) -> dict[str, Any]:
        shared = ("encoder", "tokenizer")
        models = {
            name: {
                "class": keras.saving.get_registered_name(type(model)),
                "config": {k: v for k, v in model.get_config().items() if k not in shared},
            }
            for name, model in self.models.items()
        }
        return {**super().get_config(), "models": models}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Makes the model of a configuration from `get_config`."""
        given = dict(config)
        parts = {n: keras.saving.deserialize_keras_object(given.pop(n)) for n in cls.parts}
        models = {
            name: keras.saving.get_registered_object(one["class"])(**parts, **one["config"])
            for name, one in given.pop("models").items()
        }
        return cls(models, **given)

    def get_compile_config(self) -> dict[str, Any] | None:
        """Returns the optimizer for a saved file, or None where losses or metrics were given."""
        return None if self._has_own_losses else super().get_compile_config()
