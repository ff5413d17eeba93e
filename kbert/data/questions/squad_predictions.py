"""Prediction files for the official evaluation of SQuAD: {question id: answer}.

Source: evaluate-v1.1.py and evaluate-v2.0.py at rajpurkar.github.io/SQuAD-explorer; in version 2.0
an empty answer means that the context does not answer the question.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbert.data.tables.json_rows import json_value
from kbert.data.tables.text_files import read_text
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


def read_predictions(path: str | os.PathLike[str]) -> dict[str, str]:
    """Reads predictions.

    Args:
        path: JSON, {question id: answer}; UTF-8, plain or gzipped.

    Returns:
        {question id: answer} in the order of the file.

    Raises:
        ValueError: the file is empty or not such JSON, or an id occurs twice; the message names
            the file, and the line or the id.
        FileNotFoundError: there is no such file.
    """
    source = os.fspath(path)
    value = json_value(source, read_text(path), "predictions", object_pairs_hook=_Pairs)
    if not isinstance(value, _Pairs) or not value.pairs:
        kind = "an empty object" if isinstance(value, _Pairs) else type(value).__name__
        raise ValueError(
            f"{source}: the file must be an object of ids and answers. Received: {kind}"
        )
    predictions: dict[str, str] = {}
    for id, answer in value.pairs:
        if id in predictions:
            raise ValueError(f"{source}: each id must occur once. Received: {id!r} twice")
        if not isinstance(answer, str):
            kind = "an object" if isinstance(answer, _Pairs) else repr(answer)
            raise ValueError(f"{source}, id {id!r}: the answer must be a string. Received: {kind}")
        predictions[id] = answer
    return predictions


class _Pairs:
    """A JSON object with all its pairs: a dict would keep only the last of two equal keys."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs
