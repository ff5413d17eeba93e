"""tensorflow-text's op that cuts texts at a pattern, without the checks that its function adds.

`tf_text.regex_split_with_offsets` makes three ragged tensors of what its op returns, and checks
each: nine conditions of 200 nodes, at each call and whenever a dataset begins. The op's splits need
no check.

Shapes: R rows.
"""

import tensorflow as tf
from tensorflow_text.python.ops.regex_split_ops import gen_regex_split_ops


def regex_split(rows: tf.Tensor, pattern: str) -> tf.RaggedTensor:
    """Cuts rows, string (R,), around each match of `pattern`, into ragged string (R, (parts)).

    The matches are parts as well; so the parts of a row, none of them empty, are the row if they
    are joined. The op stops at U+0000.
    """
    parts, _, _, row_splits = gen_regex_split_ops.regex_split_with_offsets(
        input=rows,
        delim_regex_pattern=f"({pattern})",  # the op cuts out what a group matches
        keep_delim_regex_pattern=r"((?s).*)",
    )
    parts.set_shape([None])  # the op does not infer it
    row_splits.set_shape([None])
    return tf.RaggedTensor.from_row_splits(parts, row_splits, validate=False)
