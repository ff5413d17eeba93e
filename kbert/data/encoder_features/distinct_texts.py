"""Which texts of a set are the same, by their token ids."""

import numpy as np

from kbert.data.batches.packed_examples import PackedExamples


def distinct_texts(packed: PackedExamples) -> tuple[np.ndarray, np.ndarray]:
    """Finds the different texts of a set.

    Two texts are the same if all their token ids and segment ids are.

    Args:
        packed: n texts.

    Returns:
        int64 (u,), the first of each kind, the longest first and equally long ones in their order;
        and int64 (n,), for each text the place of its like in the former.
    """
    lengths = np.asarray(packed.lengths)
    first = np.arange(len(lengths))
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        cells = packed.starts[rows][:, None] + np.arange(length)
        ids = np.concatenate([packed.token_ids[cells], packed.segment_ids[cells]], axis=1)
        # As one value of so many bytes a text; a text without tokens has none, and gets one.
        ids = np.pad(ids, ((0, 0), (0, int(length == 0))))
        values = np.ascontiguousarray(ids).view(f"V{ids.shape[1] * ids.itemsize}")[:, 0]
        _, chosen, inverse = np.unique(values, return_index=True, return_inverse=True)
        first[rows] = rows[chosen[inverse]]
    kinds = np.flatnonzero(first == np.arange(len(lengths)))
    kinds = kinds[np.argsort(-lengths[kinds].astype("int64"), kind="stable")]
    place = np.zeros(len(lengths), "int64")
    place[kinds] = np.arange(len(kinds))
    return kinds, place[first]
