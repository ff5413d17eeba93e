"""Steps of Keras' loops, whose signature depends on its backend."""

from typing import Any

import keras


def outputs_of_step(model: Any, *args: Any) -> Any:
    """Returns what `predict_step` of a model must return on the running backend.

    Args:
        model: has `batch_outputs(x)`.
        *args: a batch, or on JAX the values of the model's variables and a batch.

    Returns:
        The outputs of the batch; on JAX also the values of the variables that do not train.
    """
    x = keras.utils.unpack_x_y_sample_weight(args[-1])[0]
    if len(args) == 1:
        return model.batch_outputs(x)
    trained, others = args[0][:2]
    variables = (*model.trainable_variables, *model.non_trainable_variables)
    with keras.StatelessScope(state_mapping=list(zip(variables, (*trained, *others)))):
        return model.batch_outputs(x), others
