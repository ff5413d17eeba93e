"""Keras' fit, evaluate and predict for models that were made within a strategy's scope."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import keras
import tensorflow as tf
from keras import tree

from kbert.optimization.replicas import over_replicas
from kbert.optimization.sequence_losses import counting_tokens
from kbert.pipelines.replication.row_splitting import RowSplitting

# The mean over the examples of a batch, under both of its names in Keras.
_MEANS = ("sum_over_batch_size", "mean")
# Optimizer settings that act on the gradients of each replica before they are summed.
_OF_EACH_REPLICA = ("clipnorm", "clipvalue", "global_clipnorm", "gradient_accumulation_steps")


class ReplicatedModel(keras.Model):
    """A Keras model that trains within a strategy's scope as well as without one.

    Keras' own loops fail there with several steps per execution and with several workers, and
    report the mean of the replicas' metrics. Here the steps are one graph, and metrics are computed
    over all replicas; losses and gradients are exact by `kbert.optimization.replicas`.
    """

    train_function: Any
    test_function: Any
    predict_function: Any
    steps_per_execution: int
    _predicts = False

    @property
    def is_replicated(self) -> bool:
        """Returns whether the model was made within a strategy's scope."""
        return getattr(self, "_distribute_strategy", None) is not None

    @property
    def distribute_strategy(self) -> Any:
        """Returns the strategy that the model was made with, or TensorFlow's default."""
        if not self.is_replicated:
            return super().distribute_strategy
        strategy = self._distribute_strategy
        # Another worker may have nothing to predict, so each predicts on its own.
        return RowSplitting(strategy, self._predicts and is_multi_worker(strategy))

    def compile(
        self, optimizer: Any = None, loss: Any = None, metrics: Any = None, **kwargs: Any
    ) -> None:
        """Prepares the model for training, within the strategy's scope if there is one.

        Raises:
            ValueError: within a strategy's scope, the optimizer was made outside of it, or loss or
                optimizer would not apply to the whole batch.
        """
        kwargs |= {"optimizer": optimizer, "loss": loss, "metrics": metrics}
        if not self.is_replicated:
            super().compile(**kwargs)
            return
        strategy = self._distribute_strategy
        _check_optimizer(optimizer, strategy)
        _check_losses(loss)
        with strategy.scope():
            super().compile(**kwargs)

    def train_step(self, data: Any) -> Any:
        """Runs Keras' training step; within a strategy's scope, one replica's part of it.

        Gradients of embeddings become dense. Otherwise they list a row as often as its token
        occurs: Keras' Adam would square the parts of a row separately, and replicas gather lists of
        different lengths in a branch that fails within a loop.
        """
        adds_up = getattr(self.optimizer, "sums_before_clipping", False)
        if not self.is_replicated and (adds_up or not self.trainable_weights):
            return super().train_step(data)
        x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
        rows = tf.shape(next(one for one in tree.flatten(x) if one is not None))[0]
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x, y, y_pred, weight, training=True)
            scaled = self.optimizer.scale_loss(loss)
        replicas = self._distribute_strategy.num_replicas_in_sync if self.is_replicated else 1
        self._loss_tracker.update_state(loss * replicas, sample_weight=rows)
        found = tape.gradient(scaled, self.trainable_weights)
        dense = [None if one is None else tf.convert_to_tensor(one) for one in found]
        self.optimizer.apply_gradients(zip(dense, self.trainable_weights))
        return self.compute_metrics(x, y, y_pred, sample_weight=weight)

    def test_step(self, data: Any) -> Any:
        """Runs Keras' test step; a loss that is a mean over tokens is reported as that over all.

        Keras weights the losses of batches by their number of examples, though length-bucketed
        batches hold many short examples or few long ones.
        """
        x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
        if getattr(self.loss, "per", None) != "token":
            return super().test_step(data)
        y_pred = self(x, training=False)
        loss = self.compute_loss(x, y, y_pred, weight, training=False)
        replicas = self._distribute_strategy.num_replicas_in_sync if self.is_replicated else 1
        tokens = tf.reduce_sum(tf.cast(counting_tokens(y), loss.dtype))
        (all_tokens,) = over_replicas(tokens)
        self._loss_tracker.update_state(loss * replicas, sample_weight=all_tokens)
        return self.compute_metrics(x, y, y_pred, sample_weight=weight)

    def make_train_function(self, force: bool = False) -> Any:
        """Makes Keras' function; within a strategy's scope, one for the steps of all replicas."""
        if not self.is_replicated:
            return super().make_train_function(force)
        if self.train_function is None or force:
            with self._distribute_strategy.scope():
                if not self.optimizer.built:
                    self.optimizer.build(self.trainable_variables)
            self.train_function = self._steps(self.train_step)
        return self.train_function

    def make_test_function(self, force: bool = False) -> Any:
        """Makes Keras' function; within a strategy's scope, one for the steps of all replicas."""
        if not self.is_replicated:
            return super().make_test_function(force)
        if self.test_function is None or force:
            self.test_function = self._steps(self.test_step)
        return self.test_function

    def make_predict_function(self, force: bool = False) -> Any:
        """Makes Keras' function; within a strategy's scope, one that keeps the order of rows."""
        if not self.is_replicated:
            return super().make_predict_function(force)
        if self.predict_function is None or force:
            self.predict_function = self._prediction()
        return self.predict_function

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """Runs Keras' `predict`; with several workers, each predicts its own input.

        An execution is one step: Keras would trace a graph for each combination of batch widths.
        """
        steps, self.steps_per_execution = self.steps_per_execution, 1
        self._predicts = True
        try:
            return super().predict(*args, **kwargs)
        finally:
            self._predicts, self.steps_per_execution = False, steps

    def _steps(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Returns a function that takes `steps_per_execution` steps and returns the metrics."""
        strategy = self._distribute_strategy

        def one(data: Any) -> dict[str, Any]:
            strategy.run(step, args=(data,))
            return self.get_metrics_result()  # outside of the replicas: over all of them

        def next_one(iterator: Any) -> dict[str, Any]:
            return one(iterator.get_next())

        def several(iterator: Any) -> tuple[tf.Tensor, dict[str, Any]]:
            most = self.steps_per_execution
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
            return done, self.get_metrics_result()

        if not self.run_eagerly:
            one, next_one, several = (
                tf.function(function, reduce_retracing=True, autograph=False)
                for function in (one, next_one, several)
            )

        def function(iterator: Any) -> dict[str, Any]:
            with strategy.scope():
                if not isinstance(iterator, tf.distribute.DistributedIterator):
                    return [one(data) for data in iterator][-1]  # of `train_on_batch`
                if self.steps_per_execution == 1:
                    return next_one(iterator)
                done, logs = several(iterator)
                if not int(done):
                    raise StopIteration
                return logs

        return function

    def _prediction(self) -> Callable[[Any], Any]:
        """Returns a function that maps a list of batches to the outputs of `predict_step`."""
        strategy = self._distribute_strategy
        alone = is_multi_worker(strategy)

        def one(data: Any) -> Any:
            if alone:
                return self.predict_step(data)
            found = strategy.run(self.predict_step, args=(data,))
            return tree.map_structure(
                lambda *values: tf.concat(values, axis=0), *_by_replica(strategy, found)
            )

        if not self.run_eagerly:
            one = tf.function(one, reduce_retracing=True, autograph=False)

        def function(batches: Any) -> Any:
            found = [one(data) for data in batches]
            return tree.map_structure(lambda *values: tf.concat(values, axis=0), *found)

        return function

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        """Builds from the data's specification; Keras would average a batch over the replicas.

        With several steps per execution, the metrics' variables exist before it, as with one step.
        """
        several = self.is_replicated or self.steps_per_execution > 1
        if not several or iterator is None:
            super()._maybe_symbolic_build(iterator, data_batch)
            return
        specs = iterator.data_adapter.get_tf_dataset().element_spec
        scope = self._distribute_strategy.scope() if self.is_replicated else nullcontext()
        with scope:
            self._symbolic_build(data_batch=tf.nest.map_structure(_example, specs))


def is_multi_worker(strategy: Any) -> bool:
    """Returns whether replicas of a strategy are in other processes.

    Args:
        strategy: a `tf.distribute.Strategy`.
    """
    local = len(strategy.extended.worker_devices)
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy) and (
        local < strategy.num_replicas_in_sync
    )


def _by_replica(strategy: Any, values: Any) -> list[Any]:
    """Returns the results of the replicas, one structure each."""
    leaves = [strategy.experimental_local_results(leaf) for leaf in tree.flatten(values)]
    return [tree.pack_sequence_as(values, list(one)) for one in zip(*leaves)]


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
