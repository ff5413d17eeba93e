"""Prediction files for the official evaluation of SQuAD: {question id: answer}.

Source: evaluate-v1.1.py and evaluate-v2.0.py at rajpurkar.github.io/SQuAD-explorer; in version 2.0
an empty answer means that the context does not answer the question.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from kbert.storage.atomic_directory import write_atomically


def write_predictions(path: str | os.PathLike[str], predictions: Mapping[str, str]) -> Path:
    """Writes predictions atomically; an existing file is replaced.

    Args:
        path: the file. Missing parents are created.
        predictions: {question id: answer}; "" for no answer.

    Returns:
        Path of the file.

    Raises:
        ValueError: there are no predictions, or an id or an answer is not a string.
    """
    if not predictions:
        raise ValueError("`predictions` must hold an answer. Received: none")
    for id, answer in predictions.items():
        if not isinstance(id, str) or not isinstance(answer, str):
            raise ValueError(
                "`predictions` must be {id: answer}, both of them strings. Received: "
                f"{id!r}: {answer!r}"
            )
    # ASCII only: an answer cut out of broken text may hold lone surrogates, which UTF-8 cannot.
    write_atomically(path, json.dumps(dict(predictions), indent=1) + "\n")
    return Path(path)
