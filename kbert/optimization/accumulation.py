"""Gradient accumulation with exact gradients over the batches of an update."""

from collections.abc import Sequence


def accumulation_weights(tokens: Sequence[int], steps: int) -> list[float]:
    """Returns the sample weights with which accumulated gradients are those of a large batch.

    An optimizer with `gradient_accumulation_steps=steps` takes the plain mean of the gradients of
    `steps` batches in a row. Where a loss is a mean over the tokens of its batch, as
    `LabelSmoothedCrossEntropy` and `TokenCrossEntropy` are, a token of a short batch then has
    more weight than one of a long batch. With the loss of batch i multiplied by
    w_i = steps n_i / (n_1 + ... + n_steps), n the tokens that count, the mean of the gradients is
    exactly the gradient of the mean over all tokens of the update:
    1/steps sum_i w_i g_i = sum_i n_i g_i / sum_i n_i. The w_i of an update have the mean 1.

    Give each example of batch i the sample weight w_i. The optimizer keeps counting batches across
    epochs, so every epoch must have a whole number of updates. (At the end of data of unknown
    length Keras' own optimizers count one batch too many; kbert's AdamW does not.)

    Args:
        tokens: the number of tokens that count (targets other than -1) of each batch, in the order
            of the training.
        steps: batches per update.

    Returns:
        One weight per batch; all are 0 in an update without tokens.

    Raises:
        ValueError: `steps` is less than 1, a number of tokens is negative, or the batches are not
            a whole number of updates.
    """
    if steps < 1:
        raise ValueError(f"`steps` must be at least 1. Received: steps={steps}")
    if len(tokens) % steps:
        raise ValueError(
            f"`tokens` must be of a multiple of {steps} batches: leave out the last "
            f"{len(tokens) % steps}. Received: {len(tokens)} batches"
        )
    if any(number < 0 for number in tokens):
        raise ValueError(f"`tokens` must not be negative. Received: {min(tokens)}")
    weights = []
    for first in range(0, len(tokens), steps):
        update = [int(number) for number in tokens[first : first + steps]]
        whole = sum(update)
        weights += [steps * number / whole if whole else 0.0 for number in update]
    return weights
