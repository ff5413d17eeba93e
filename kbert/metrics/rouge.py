"""ROUGE-L of texts with several references each, by TensorFlow Text.

Source: Lin, "ROUGE: A Package for Automatic Evaluation of Summaries" (2004), section 3.1.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

Tokens = Sequence[str]


def rouge_l(hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> float:
    """Returns the mean over texts of the best F-measure over their references, from 0 to 100.

    F is 2 P R / (P + R): the longest common subsequence of hypothesis and reference has a share P
    of the hypothesis' tokens and R of the reference's. A text without tokens scores 0, also beside
    a reference without any.

    Args:
        hypotheses: the tokens of each text, at least one text.
        references: for each text the tokens of its references, at least one reference.
    """
    counts = [len(several) for several in references]
    repeated = [text for text, count in zip(hypotheses, counts) for _ in range(count)]
    single = [reference for several in references for reference in several]
    # An alpha of 0.5 weighs precision and recall equally.
    found, _, _ = tf_text.metrics.rouge_l(_ragged(repeated), _ragged(single), alpha=0.5)
    firsts = np.cumsum([0, *counts[:-1]])
    return 100.0 * float(np.maximum.reduceat(found.numpy(), firsts).mean(dtype="float64"))


def _ragged(texts: Sequence[Tokens]) -> tf.RaggedTensor:
    # The type is given, for texts none of which has a token.
    values = tf.constant([token for text in texts for token in text], tf.string)
    return tf.RaggedTensor.from_row_lengths(values, [len(text) for text in texts])
