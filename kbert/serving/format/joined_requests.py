"""Which requests share a batch in the graph of an export.

The graph decides by rows and sizes (`serving/export/request_batching`); what runs a graph can tell
from the same numbers which requests surely run alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kbert.serving.format.batching_file import LENGTHS
from kbert.serving.format.servable import nodes_of

IMAGE = "image"  # the name of inputs that are encoded images
# A larger request would delay those that it joins, and win nothing: it runs beside them.
MOST_TEXT_BYTES, MOST_IMAGE_BYTES, MOST_TOKENS = 4096, 2**20, 1024


def joined_rows(graph: Any) -> int:
    """Returns the most rows of a batch that requests share in a GraphDef, 0 where none do."""
    joins = (node for _, node in nodes_of(graph) if node.op == "BatchFunction")
    return max((node.attr["max_batch_size"].i for node in joins), default=0)


def runs_alone(
    shapes: Mapping[str, Sequence[int | None] | None],
    inputs: Mapping[str, np.ndarray],
    most_rows: int,
) -> bool:
    """Returns whether a request shares no batch.

    Args:
        shapes: of the inputs of its signature, None for a dimension that may vary.
        inputs: arrays (B, ...) by name, of numbers or of str or bytes objects.
        most_rows: see `joined_rows`.
    """
    varies = any(shape is not None and None in shape[1:] for shape in shapes.values())
    if varies and LENGTHS not in shapes:
        return True
    batches = [batch for batch in inputs.values() if batch.ndim]
    if not batches or not 0 < len(batches[0]) < most_rows:
        return True
    if texts := [batch for batch in batches if batch.dtype == object]:
        size = sum(len(one) for batch in texts for one in batch.flat)
        return size > (MOST_IMAGE_BYTES if IMAGE in inputs else MOST_TEXT_BYTES)
    return min(batch.size for name, batch in inputs.items() if name != LENGTHS) > MOST_TOKENS
