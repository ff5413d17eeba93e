"""AdamW, the optimizer that BERT is fine-tuned with, and its updates by TensorFlow's operations."""

from typing import Any, NamedTuple

import keras
from keras import ops

from kbert.optimization.losses import replica_context, tensorflow


def is_decayed(variable: Any) -> bool:
    """Returns whether weight decay applies to a variable: not to biases and LayerNorm weights."""
    name = variable.path.split("/")[-1]
    return not name.endswith("bias") and name not in ("gamma", "beta")


class StepNumbers(NamedTuple):
    """Numbers of a step that all variables of a precision share."""

    rate: Any
    beta_1_power: Any
    beta_2_power: Any
    beta_1: Any
    beta_2: Any
    correction: Any  # sqrt(1 - b2^t)
    epsilon: Any
    decay: Any


@keras.saving.register_keras_serializable("kbert")
class AdamW(keras.optimizers.Optimizer):
    """Adam with bias correction and decoupled weight decay.

    m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, then
    w = w - rate decay w - rate sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + epsilon').

    Source: Loshchilov and Hutter 2019, algorithm 2, with the efficient form of Kingma and Ba 2015
    (end of section 2): `epsilon` there is epsilon' = epsilon sqrt(1 - b2^t), so that it means what
    it means in algorithm 1. Biases and LayerNorm weights do not decay (Devlin et al. 2019, A.2).

    Args:
        learning_rate: float or schedule.
        weight_decay: decay per step, as a fraction of the learning rate.
        beta_1: b1.
        beta_2: b2.
        epsilon: added to the root of the corrected second moment.
        global_clipnorm: the global norm that gradients are clipped to, or None.

    With Keras' `gradient_accumulation_steps` a schedule counts updates, as it would with large
    batches; Keras' own optimizers call it with the number of small batches.

    Where several replicas share a batch, gradients are summed over replicas first: their norm, and
    what accumulates, are those of the whole batch. (Keras' own optimizers clip the gradients of
    each replica.)
    """

    # The gradients of the whole batch are clipped and accumulated.
    sums_before_clipping = True

    def __init__(
        self,
        learning_rate: Any = 2e-5,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        global_clipnorm: float | None = 1.0,
        name: str = "adamw",
        **kwargs: Any,
    ) -> None:
        # The base class would decay in a pass of its own, and by its own rule.
        super().__init__(learning_rate, global_clipnorm=global_clipnorm, name=name, **kwargs)
        if weight_decay < 0:
            raise ValueError(
                f"`weight_decay` must not be negative. Received: weight_decay={weight_decay}"
            )
        self.decay, self.epsilon = weight_decay, epsilon
        self.beta_1, self.beta_2 = beta_1, beta_2

    def build(self, variables: Any) -> None:
        """Creates both moments of every variable."""
        if self.built:
            return
        for variable in variables:
            if keras.backend.standardize_dtype(variable.dtype) in ("bfloat16", "float16"):
                raise ValueError(
                    "`variables` must be float32 to be trained: 1 - 0.001 is 1 in bfloat16, and "
                    f"small steps are lost. Received: {variable.path} of {variable.dtype}. "
                    "dtype='mixed_bfloat16' computes in bfloat16 with weights in float32."
                )
        super().build(variables)
        # Computed once, here: at the update TensorFlow passes its own variables, without paths.
        self._decayed = [is_decayed(v) and self._use_weight_decay(v) for v in variables]
        self._momentums = [self.add_variable_from_reference(v, name="momentum") for v in variables]
        self._velocities = [self.add_variable_from_reference(v, name="velocity") for v in variables]

    def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        """Updates all variables with their gradients; see Keras' `Optimizer.apply`."""
        # The numbers that all variables share are computed once per step, not once per variable.
        step = ops.cast(self.iterations + 1, "float32")
        powers = (ops.power(self.beta_1, step), ops.power(self.beta_2, step))
        numbers = (ops.cast(self._get_current_learning_rate(), "float32"), *powers)
        variables = trainable_variables or self._trainable_variables
        dtypes = {keras.backend.standardize_dtype(variable.dtype) for variable in variables}
        self._step_numbers = {dtype: self._numbers_of(dtype, *numbers) for dtype in dtypes}
        if keras.backend.backend() != "tensorflow":
            return super().apply(grads, trainable_variables)
        grads = [dense_where_fixed(gradient) for gradient in grads]
        grads = summed_over_replicas(grads, replica_context())
        grads = [with_each_row_once(gradient) for gradient in grads]
        # Keras learns that data of unknown length are exhausted from a step that fails. What does
        # not depend on data would still run in it: the decay, and the count of the steps.
        needed = [gradient for gradient in grads if gradient is not None][:1]
        with tensorflow().control_dependencies(needed):
            return super().apply(grads, trainable_variables)

    def _backend_update_step(
        self, grads: Any, trainable_variables: Any, learning_rate: Any
    ) -> None:
        if replica_context() is None:
            super()._backend_update_step(grads, trainable_variables, learning_rate)
            return
        # All replicas have the same gradients: each updates its own weights, and none waits.
        for gradient, variable in zip(grads, trainable_variables):
            self.update_step(gradient, native_variable(variable), learning_rate)

    def _backend_increment_gradient_accumulators(self, grads: Any, acc_grads: Any) -> None:
        if replica_context() is None:
            super()._backend_increment_gradient_accumulators(grads, acc_grads)
            return
        for gradient, sum in zip(grads, acc_grads):
            assign_own(sum, sum + gradient)

    def _backend_reset_gradient_accumulators(self) -> None:
        if replica_context() is None:
            super()._backend_reset_gradient_accumulators()
            return
        for sum in self._accumulated_gradients:
            if sum is not None:
                assign_own(sum, ops.zeros_like(sum))

    def _get_current_learning_rate(self) -> Any:
        if isinstance(self._learning_rate, keras.optimizers.schedules.LearningRateSchedule):
            return self._learning_rate(self.iterations)
        return super()._get_current_learning_rate()

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable with its gradient, both of the same shape."""
        numbers = self._step_numbers[keras.backend.standardize_dtype(variable.dtype)]
        index = self._get_variable_index(variable)
        if self.decay > 0 and self._decayed[index]:
            decay = numbers.decay * variable
            if replica_context() is None:
                self.assign_sub(variable, decay)
            else:
                assign_own(variable, variable - decay)
        momentum, velocity = self._momentums[index], self._velocities[index]
        if keras.backend.backend() == "tensorflow":
            apply_in_one_pass(variable, momentum, velocity, gradient, numbers)
            return
        self.assign_add(momentum, (gradient - momentum) * (1 - self.beta_1))
        self.assign_add(velocity, (ops.square(gradient) - velocity) * (1 - self.beta_2))
        scaled = numbers.rate * numbers.correction / (1 - numbers.beta_1_power)
        self.assign_sub(variable, scaled * momentum / (ops.sqrt(velocity) + numbers.epsilon))

    def _numbers_of(
        self, dtype: str, rate: Any, beta_1_power: Any, beta_2_power: Any
    ) -> StepNumbers:
        rate = ops.cast(rate, dtype)
        beta_2_power = ops.cast(beta_2_power, dtype)
        correction = ops.sqrt(1 - beta_2_power)
        return StepNumbers(
            rate,
            ops.cast(beta_1_power, dtype),
            beta_2_power,
            ops.cast(self.beta_1, dtype),
            ops.cast(self.beta_2, dtype),
            correction,
            self.epsilon * correction,
            rate * self.decay,
        )

    def get_config(self) -> dict[str, Any]:
        numbers = {"beta_1": self.beta_1, "beta_2": self.beta_2, "epsilon": self.epsilon}
        return {**super().get_config(), "weight_decay": self.decay, **numbers}


def dense_where_fixed(gradient: Any) -> Any:
    """Makes the `IndexedSlices` of an embedding dense, where the number of its tokens is static.

    Steps of static shapes may be compiled for a TPU, where the rows that occur cannot be counted.
    """
    tf = tensorflow()
    if isinstance(gradient, tf.IndexedSlices) and gradient.indices.shape.is_fully_defined():
        return tf.convert_to_tensor(gradient)
    return gradient


def with_each_row_once(gradient: Any) -> Any:
    """Sums the `IndexedSlices` of an embedding over repeated rows.

    TensorFlow lists a row as often as its token occurs, and Keras takes the norm of the list.
    """
    tf = tensorflow()
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    sums = tf.math.unsorted_segment_sum(gradient.values, places, tf.shape(rows)[0])
    return tf.IndexedSlices(sums, rows, gradient.dense_shape)


def summed_over_replicas(gradients: list[Any], context: Any) -> list[Any]:
    """Sums gradients over replicas, to those of the whole batch; a weight may have none."""
    given = [gradient for gradient in gradients if gradient is not None]
    if context is None or not given:
        return gradients
    sums = iter(context.all_reduce("SUM", given))
    return [None if gradient is None else next(sums) for gradient in gradients]


def apply_in_one_pass(
    variable: Any, momentum: Any, velocity: Any, gradient: Any, numbers: StepNumbers
) -> None:
    """Runs TensorFlow's fused Adam kernel: one pass over the weights, not eight single operations.

    `variable` is TensorFlow's (of a mirrored one, this replica's copy is updated), the moments are
    Keras', and `numbers` those of its precision.
    """
    tf = tensorflow()
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=momentum.value.handle,
        v=velocity.value.handle,
        beta1_power=numbers.beta_1_power,
        beta2_power=numbers.beta_2_power,
        lr=numbers.rate,
        beta1=numbers.beta_1,
        beta2=numbers.beta_2,
        epsilon=numbers.epsilon,
        grad=tf.convert_to_tensor(gradient),  # an embedding's IndexedSlices become dense
    )


def native_variable(variable: Any) -> Any:
    """Returns the TensorFlow variable of a Keras one; one of TensorFlow is returned as it is."""
    native = getattr(variable, "value", variable)
    return variable if callable(native) else native  # TensorFlow's has a method of that name


def assign_own(variable: Any, value: Any) -> None:
    """Assigns to a Keras or TensorFlow variable; of a mirrored one, to this replica's copy only.

    TensorFlow's own assignment would synchronize replicas first, which no branch of a graph can.
    """
    tf = tensorflow()
    native = native_variable(variable)
    value = tf.cast(tf.convert_to_tensor(value), native.dtype)
    tf.raw_ops.AssignVariableOp(resource=native.handle, value=value)
