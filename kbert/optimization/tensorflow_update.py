"""Weight updates by TensorFlow operations, for the TensorFlow backend only."""

from typing import Any


def tensorflow() -> Any:
    """Imports TensorFlow, only where it is the running backend."""
    import tensorflow

    return tensorflow


def dense_where_fixed(gradient: Any) -> Any:
    """Makes an embedding's gradient dense, where the number of its tokens is static.

    Steps of static shapes may be compiled for a TPU, where the rows that occur cannot be counted.

    Args:
        gradient: `IndexedSlices`; anything else is returned as it is.
    """
    tf = tensorflow()
    if isinstance(gradient, tf.IndexedSlices) and gradient.indices.shape.is_fully_defined():
        return tf.convert_to_tensor(gradient)
    return gradient


def with_each_row_once(gradient: Any) -> Any:
    """Sums an embedding's gradient over repeated rows.

    TensorFlow lists a row as often as its token occurs, and Keras takes the norm of the list.

    Args:
        gradient: `IndexedSlices`; anything else is returned as it is.
    """
    tf = tensorflow()
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    sums = tf.math.unsorted_segment_sum(gradient.values, places, tf.shape(rows)[0])
    return tf.IndexedSlices(sums, rows, gradient.dense_shape)


def summed_over_replicas(gradients: list[Any], context: Any) -> list[Any]:
    """Sums gradients over replicas, to those of the whole batch.

    Args:
        gradients: those of this replica; None where a weight has none.
        context: from `kbert.optimization.replicas.replica_context`; None changes nothing.
    """
    given = [gradient for gradient in gradients if gradient is not None]
    if context is None or not given:
        return gradients
    sums = iter(context.all_reduce("SUM", given))
    return [None if gradient is None else next(sums) for gradient in gradients]


def apply_in_one_pass(
    variable: Any, momentum: Any, velocity: Any, gradient: Any, numbers: Any
) -> None:
    """Runs TensorFlow's fused Adam kernel: one pass over the weights, not eight single operations.

    Args:
        variable: a TensorFlow variable; of a mirrored one, this replica's copy is updated.
        momentum: a Keras variable.
        velocity: a Keras variable.
        gradient: an array or `IndexedSlices` of the variable's shape.
        numbers: b1^t, b2^t, the rate, b1, b2 and epsilon.
    """
    tf = tensorflow()
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=momentum.value.handle,
        v=velocity.value.handle,
        **dict(
            zip(
                ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"),
                (tf.cast(number, variable.dtype) for number in numbers),
            )
        ),
        grad=tf.convert_to_tensor(gradient),  # an embedding's IndexedSlices become dense
    )


def native_variable(variable: Any) -> Any:
    """Returns the TensorFlow variable of a Keras variable; a TensorFlow one is returned as it is.

    Args:
        variable: a Keras or TensorFlow variable.
    """
    native = getattr(variable, "value", variable)
    return variable if callable(native) else native  # TensorFlow's has a method of that name


def assign_own(variable: Any, value: Any) -> None:
    """Assigns to a variable; of a mirrored one, to this replica's copy only.

    TensorFlow's own assignment would synchronize replicas first, which no branch of a graph can.

    Args:
        variable: a Keras or TensorFlow variable.
        value: of its shape; `IndexedSlices` become dense.
    """
    tf = tensorflow()
    native = native_variable(variable)
    value = tf.cast(tf.convert_to_tensor(value), native.dtype)
    tf.raw_ops.AssignVariableOp(resource=native.handle, value=value)
