"""Outputs of a model's or an export's main signature as what people want to know of one row."""

import math
from typing import Any

import numpy as np

_OF_TRANSLATIONS = ("translation", "score")
_OF_MASKS = ("start", "end", "start_byte", "end_byte")
_OF_ENTITIES = ("entity", "label", "score", "start", "end", "start_byte", "end_byte")


def json_answer(row: dict[str, Any]) -> dict[str, Any]:
    """Turns the outputs for one row into plain Python values, as JSON can hold them.

    Scores get the names of their classes; lists that are padded to the longest of a batch lose the
    padding and become lists of dicts.

    Args:
        row: Name of each output -> its NumPy value for the row.

    Returns:
        Of a classifier, `label`, `score`, `scores` by name; of question answering, `answer` with
        its places, and `nbest`; of translation, `translation`, `score` and `nbest`; of span
        tagging, `answers`; of entity recognition, `entities`; of a masked language model, `filled`
        and `masks`; the other outputs as they are.
    """
    plain = {key: _plain(value) for key, value in row.items()}
    if "nbest_translation" in plain:
        nbest = _rows({key: plain.pop(f"nbest_{key}") for key in _OF_TRANSLATIONS})
        best = {key: plain.pop(key) for key in _OF_TRANSLATIONS}
        # A search may find fewer, and -inf is no number of JSON's.
        return {**best, "nbest": [one for one in nbest if one["score"] > -math.inf], **plain}
    if "nbest_answer" in plain:
        keys = ("answer", "score", "start", "end")
        nbest = _rows({key: plain.pop(f"nbest_{key}") for key in keys})
        return {**plain, "nbest": [one for one in nbest if one["score"] > 0]}
    if "count" in plain and "starts" in plain:
        columns = {"answer": "answers", "score": "scores", "start": "starts", "end": "ends"}
        found = _rows({key: plain.pop(name) for key, name in columns.items()})
        return {"answers": found[: plain.pop("count")], **plain}
    if "filled" in plain and "word" in plain:
        ranked = zip(plain.pop("word"), plain.pop("score"), strict=True)
        words = [_rows({"word": word, "score": score}) for word, score in ranked]
        found = _rows({"words": words, **{key: plain.pop(key) for key in _OF_MASKS}})
        return {"filled": plain.pop("filled"), "masks": found[: plain.pop("count")], **plain}
    if "count" in plain and "entity" in plain:
        found = _rows({key: plain.pop(key) for key in _OF_ENTITIES})
        return {"entities": found[: plain.pop("count")], **plain}
    if "labels" in plain and "scores" in plain:
        plain["scores"] = dict(zip(plain.pop("labels"), plain["scores"]))
    return plain


def _rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values)) for values in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:
    """Plain Python values; bytes as text."""
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) else value
