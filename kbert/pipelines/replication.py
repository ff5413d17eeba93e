"""Keras' fit, evaluate and predict for models that were made within a strategy's scope."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import keras
import tensorflow as tf
from keras import tree

from kbert.gradients import gradients_forgotten
from kbert.optimization.losses import over_replicas
from kbert.optimization.sequence_losses import counting_tokens
from kbert.optimization.steps import rows_divided
from kbert.pipelines.row_splitting import RowSplitting

# The mean over the examples of a batch, under both of its names in Keras.
_MEANS = ("sum_over_batch_size", "mean")
# Optimizer settings that act on the gradients of each replica before they are summed.
_OF_EACH_REPLICA = ("clipnorm", "clipvalue", "global_clipnorm", "gradient_accumulation_steps")


class Replication:
    """Training of a model, which holds it, within a strategy's scope as well as without one.

    Keras' own loops fail there with several steps per execution and with several workers, and
    report the mean of the replicas' metrics. Here the steps are one graph, and metrics are computed
    over all replicas; losses and gradients are exact by `kbert.optimization.losses`. Methods of the
    `TaskModel` that have the names of those here call them.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._predicts = False
        self._devices = keras.distribution.distribution()  # of JAX

    @property
    def strategy(self) -> Any:
        """The strategy in whose scope the model was made, or None."""
        return getattr(self.model, "_distribute_strategy", None)

    @property
    def is_active(self) -> bool:
        """True where the model was made within a strategy's scope."""
        return self.strategy is not None

    @property
    def distribute_strategy(self) -> Any:
        """The strategy that the model was made with, or TensorFlow's default."""
        if not self.is_active:
            return tf.distribute.get_strategy()
        # Another worker may have nothing to predict, so each predicts on its own.
        return RowSplitting(self.strategy, self._predicts and is_multi_worker(self.strategy))

    def scope(self) -> Any:
        """Returns the strategy's scope, or a context of no effect."""
        return self.strategy.scope() if self.is_active else nullcontext()

    def compiling(self, optimizer: Any, loss: Any) -> Any:
        """Returns the context to compile in, for an optimizer and a loss as `compile` got them.

        Raises:
            ValueError: within a strategy's scope, the optimizer was made outside of it, or loss or
                optimizer would not apply to the whole batch.
        """
        if self.is_active:
            _check_optimizer(optimizer, self.strategy)
            _check_losses(loss)
        return self.scope()

    @gradients_forgotten()
    def train_step(self, *args: Any) -> Any:
        """Runs Keras' training step; within a strategy's scope, one replica's part of it.

        `args` are a batch; Keras on JAX puts the state of model and optimizer before it.

        Gradients of embeddings become dense. Otherwise they list a row as often as its token
        occurs: Keras' Adam would square the parts of a row separately, and replicas gather lists of
        different lengths in a branch that fails within a loop.
        """
        model = self.model
        if not on_tensorflow():
            _check_scope(self._devices)
            return keras.Model.train_step(model, *rows_divided(model, *args))
        adds_up = getattr(model.optimizer, "sums_before_clipping", False)
        if not self.is_active and (adds_up or not model.trainable_weights):
            return keras.Model.train_step(model, *args)
        (data,) = args
        x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
        rows = tf.shape(next(one for one in tree.flatten(x) if one is not None))[0]
        with tf.GradientTape() as tape:
            y_pred = model(x, training=True)
            loss = model.compute_loss(x, y, y_pred, weight, training=True)
            scaled = model.optimizer.scale_loss(loss)
        model._loss_tracker.update_state(loss * self.replicas, sample_weight=rows)
        found = tape.gradient(scaled, model.trainable_weights)
        dense = [None if one is None else tf.convert_to_tensor(one) for one in found]
        model.optimizer.apply_gradients(zip(dense, model.trainable_weights))
        return model.compute_metrics(x, y, y_pred, sample_weight=weight)

    def test_step(self, *args: Any) -> Any:
        """Runs Keras' test step; a loss that is a mean over tokens is reported as that over all.

        Keras weights the losses of batches by their number of examples, though length-bucketed
        batches hold many short examples or few long ones. On JAX that is what is reported.
        """
        model = self.model
        if not on_tensorflow():
            return keras.Model.test_step(model, *rows_divided(model, *args))
        if getattr(model.loss, "per", None) != "token":
            return keras.Model.test_step(model, *args)
        x, y, weight = keras.utils.unpack_x_y_sample_weight(*args)
        y_pred = model(x, training=False)
        loss = model.compute_loss(x, y, y_pred, weight, training=False)
        (all_tokens,) = over_replicas(tf.reduce_sum(tf.cast(counting_tokens(y), loss.dtype)))
        model._loss_tracker.update_state(loss * self.replicas, sample_weight=all_tokens)
        return model.compute_metrics(x, y, y_pred, sample_weight=weight)

    @property
    def replicas(self) -> int:
        """The number of replicas that share a batch."""
        return self.strategy.num_replicas_in_sync if self.is_active else 1

    @contextmanager
    def predicting(self) -> Iterator[None]:
        """Prepares Keras' `predict` within; with several workers, each predicts its own input.

        An execution is one step: Keras would trace a graph for each combination of batch widths.
        """
        model = self.model
        steps, model.steps_per_execution = model.steps_per_execution, 1
        self._predicts = True
        try:
            yield
        finally:
            self._predicts, model.steps_per_execution = False, steps

    def function(self, name: str, force: bool) -> Any:
        """Returns a function of Keras' loops for all replicas; None without a strategy.

        `name` is "train_function", "test_function" or "predict_function"; `force` makes it again.
        """
        if not self.is_active:
            return None
        if getattr(self.model, name) is None or force:
            step = getattr(self.model, name.replace("function", "step"))
            made = self._prediction() if name == "predict_function" else self._steps(step)
            setattr(self.model, name, made)
        return getattr(self.model, name)

    def _steps(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Returns a function that takes `steps_per_execution` steps and returns the metrics."""
        strategy, model = self.strategy, self.model

        def one(data: Any) -> dict[str, Any]:
            strategy.run(step, args=(data,))
            return model.get_metrics_result()  # outside of the replicas: over all of them

        def next_one(iterator: Any) -> dict[str, Any]:
            return one(iterator.get_next())

        def several(iterator: Any) -> tuple[tf.Tensor, dict[str, Any]]:
            most = model.steps_per_execution
            none = tf.experimental.Optional.empty(iterator.element_spec)

            def step_and_next(done: tf.Tensor, data: Any) -> tuple[tf.Tensor, Any]:
                strategy.run(step, args=(data.get_value(),))
                is_more = done + 1 < most
                return done + 1, tf.cond(is_more, iterator.get_next_as_optional, lambda: none)

            done, _ = tf.while_loop(
                lambda done, data: data.has_value(),
                step_and_next,
                (tf.constant(0), iterator.get_next_as_optional()),
            )
            return done, model.get_metrics_result()

        if not model.run_eagerly:
            one, next_one, several = (
                tf.function(function, reduce_retracing=True, autograph=False)
                for function in (one, next_one, several)
            )

        def function(iterator: Any) -> dict[str, Any]:
            with strategy.scope():
                if not isinstance(iterator, tf.distribute.DistributedIterator):
                    return [one(data) for data in iterator][-1]  # of `train_on_batch`
                if model.steps_per_execution == 1:
                    return next_one(iterator)
                done, logs = several(iterator)
                if not int(done):
                    raise StopIteration
                return logs

        return function

    def _prediction(self) -> Callable[[Any], Any]:
        """Returns a function that maps a list of batches to the outputs of `predict_step`."""
        strategy, model = self.strategy, self.model
        alone = is_multi_worker(strategy)

        def one(data: Any) -> Any:
            if alone:
                return model.predict_step(data)
            return _joined(_by_replica(strategy, strategy.run(model.predict_step, args=(data,))))

        if not model.run_eagerly:
            one = tf.function(one, reduce_retracing=True, autograph=False)

        return lambda batches: _joined([one(data) for data in batches])

    def build_symbolically(self, iterator: Any) -> bool:
        """Builds the model from the data's specification; returns whether it did.

        Keras would average a batch over the replicas. With several steps per execution, the
        metrics' variables exist before it, as with one step.
        """
        several = self.model.steps_per_execution > 1 and on_tensorflow()
        if iterator is None or not (self.is_active or several):
            return False
        specs = iterator.data_adapter.get_tf_dataset().element_spec
        with self.scope():
            self.model._symbolic_build(data_batch=tf.nest.map_structure(_example, specs))
        return True


def on_tensorflow() -> bool:
    """Returns whether Keras computes with TensorFlow, and not with JAX."""
    return bool(keras.backend.backend() == "tensorflow")


def _check_scope(devices: Any) -> None:
    """Raises where a model that was made for several devices of JAX trains outside of the scope."""
    if devices is not None and keras.distribution.distribution() is not devices:
        raise ValueError(
            "`fit` must be called within the scope of the strategy that the model was made with. "
            f"Received: a model for {devices.device_mesh.devices.size} devices, outside of it"
        )


def is_multi_worker(strategy: Any) -> bool:
    """Returns whether replicas of a strategy are in other processes."""
    is_collective = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
    return is_collective and len(strategy.extended.worker_devices) < strategy.num_replicas_in_sync


def _by_replica(strategy: Any, values: Any) -> list[Any]:
    """Returns the results of the replicas, one structure each."""
    leaves = [strategy.experimental_local_results(leaf) for leaf in tree.flatten(values)]
    return [tree.pack_sequence_as(values, list(one)) for one in zip(*leaves)]


def _joined(parts: list[Any]) -> Any:
    """Concatenates structures of arrays along their rows."""
    return tree.map_structure(lambda *values: tf.concat(values, axis=0), *parts)


def _example(spec: tf.TensorSpec) -> tf.Tensor:
    """Returns a tensor of zeros that fits a specification."""
    return tf.zeros([2 if size is None else size for size in spec.shape], spec.dtype)


def _check_optimizer(optimizer: Any, strategy: Any) -> None:
    if not isinstance(optimizer, keras.optimizers.Optimizer):
        return  # a name, from which Keras makes an optimizer
    if getattr(optimizer, "_distribution_strategy", strategy) is not strategy:
        raise ValueError(
            "`optimizer` must be made within the scope of the strategy that the model was made "
            f"with. Received: a {type(optimizer).__name__} that was made outside of it"
        )
    if optimizer.use_ema and optimizer.ema_overwrite_frequency:
        raise ValueError(
            "`optimizer` must have no ema_overwrite_frequency where several replicas train: none "
            "of them may overwrite the weights of all within its step. Received: "
            f"{type(optimizer).__name__}(ema_overwrite_frequency="
            f"{optimizer.ema_overwrite_frequency})"
        )
    if getattr(optimizer, "sums_before_clipping", False):
        return
    for name in _OF_EACH_REPLICA:
        if getattr(optimizer, name, None):
            raise ValueError(
                f"`optimizer` must be kbert's AdamW where it has {name} and several replicas "
                "train: Keras' own would apply it to the gradients of each replica. Received: "
                f"{type(optimizer).__name__}({name}={getattr(optimizer, name)})"
            )


def _check_losses(losses: Any) -> None:
    for loss in tree.flatten(losses):
        reduction = getattr(loss, "reduction", _MEANS[0])
        if reduction not in _MEANS:
            raise ValueError(
                "`loss` must be a mean over the batch where several replicas train. Received: "
                f"{type(loss).__name__}(reduction={reduction!r})"
            )
