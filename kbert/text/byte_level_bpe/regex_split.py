"""tensorflow-text's op that cuts texts at a pattern, without the checks that its function adds.

`tf_text.regex_split_with_offsets` makes three ragged tensors of what its op returns, and checks
each: nine conditions of 200 nodes, at each call and whenever a dataset begins. The op's splits need
no check.

Shapes: R rows.
"""

import tensorflow as tf
from tensorflow_text.python.ops.regex_split_ops import gen_regex_split_ops


def regex_split(rows: tf.Tensor, delimiter: str, kept: str) -> tf.RaggedTensor:
    """Cuts rows, string (R,), at what the group of `delimiter` matches: ragged string (R, (parts)).

    Args:
        rows: the rows; the op stops at U+0000.
        delimiter: a pattern with one group. No part is empty.
        kept: a pattern with one group, for delimiters that are parts as well.
    """
    parts, _, _, row_splits = gen_regex_split_ops.regex_split_with_offsets(
        input=rows, delim_regex_pattern=delimiter, keep_delim_regex_pattern=kept
    )
    parts.set_shape([None])  # the op does not infer it
    row_splits.set_shape([None])
    return tf.RaggedTensor.from_row_splits(parts, row_splits, validate=False)
