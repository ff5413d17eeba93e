"""Second copies of the output layer that predicts tokens.

Its matrix is the table of the token embeddings, and its bias belongs to the head; older versions of
transformers saved both once more under the name of the layer, `cls.predictions.decoder`.
"""

from collections.abc import Mapping

import numpy as np

WEIGHT, BIAS = "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"
_OWN_BIAS = "cls.predictions.bias"


def without_copies(
    heads: Mapping[str, np.ndarray], table: np.ndarray, report: list[str]
) -> dict[str, np.ndarray]:
    """Drops the copies from the tensors of heads.

    Args:
        heads: Hugging Face's name -> array.
        table: The token embeddings (V, D).
        report: Gets a sentence about what was dropped, or kept because it is no copy.

    Returns:
        The heads. A bias that stands under the name of the layer alone gets its usual name. What
        differs from its original stays: the model has an output layer of its own.
    """
    kept = dict(heads)
    if _OWN_BIAS not in kept and BIAS in kept:
        kept[_OWN_BIAS] = kept.pop(BIAS)
    originals = {WEIGHT: table, BIAS: kept.get(_OWN_BIAS, np.zeros(0))}
    twice = [name for name in originals if name in kept]
    copies = [name for name in twice if np.array_equal(kept[name], originals[name])]
    others = [name for name in twice if name not in copies]
    if copies:
        report.append(f"Left out, as they are copies of other weights: {', '.join(copies)}.")
    if others:
        report.append(f"The output layer is one of its own, not tied: {', '.join(others)}.")
    return {name: array for name, array in kept.items() if name not in copies}
