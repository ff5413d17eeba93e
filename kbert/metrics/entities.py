"""Metrics of entities in tagged sentences, by seqeval.

Source: Nakayama, "seqeval: A Python framework for sequence labeling evaluation" (2018); its default
mode counts as conlleval of the CoNLL-2003 shared task does.
"""

import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any

_SCHEMES = {"bio": "IOB2", "iob1": "IOB1", "iobes": "IOBES"}
_LETTERS = {"bio": "BIO", "iob1": "BIO", "iobes": "BIESO"}
_TAG = re.compile(r"O|[BIES](?:-.+)?", re.DOTALL)

Tags = Sequence[Sequence[str]]


def entity_metrics(true_tags: Tags, predicted_tags: Tags, scheme: str = "bio") -> dict[str, Any]:
    """Returns precision, recall and F1 of entities, as a JSON-serializable dict.

    An entity counts as found if its first word, its last word and its type are right. The default
    mode reads tags that are invalid in their scheme as conlleval does; the strict mode counts only
    entities that the scheme allows. Ratios of 0 / 0 are 0.

    Args:
        true_tags: the gold tags, one list per sentence.
        predicted_tags: the model's tags, of the same lengths.
        scheme: scheme of both: "bio", "iob1" or "iobes". The default mode does not depend on it.

    Returns:
        "precision", "recall" and "f1" over all entities; "strict_precision", "strict_recall" and
        "strict_f1"; "true_entities" and "predicted_entities", their numbers in the default mode;
        "per_type", for each type that occurs "precision", "recall", "f1" and "support", the number
        of gold entities. (Tags without a type count as type "_".)

    Raises:
        ValueError: no sentences, unequal lengths, an unknown scheme, or a tag that is not of the
            scheme.
        ImportError: seqeval is not installed.
    """
    if scheme not in _SCHEMES:
        raise ValueError(f"`scheme` must be one of {tuple(_SCHEMES)}. Received: scheme={scheme!r}")
    true = _checked("true_tags", true_tags, scheme)
    predicted = _checked("predicted_tags", predicted_tags, scheme)
    _check_lengths(true, predicted)
    labeling, v1, schemes = _seqeval()
    options = {"zero_division": 0}
    overall = labeling.precision_recall_fscore_support(true, predicted, average="micro", **options)
    each = labeling.precision_recall_fscore_support(true, predicted, average=None, **options)
    strict = v1.precision_recall_fscore_support(
        true, predicted, average="micro", scheme=getattr(schemes, _SCHEMES[scheme]), **options
    )
    true_entities = labeling.get_entities(true)
    predicted_entities = labeling.get_entities(predicted)
    # seqeval returns the types' rows without their names, in sorted order.
    types = sorted({type for type, _, _ in (*true_entities, *predicted_entities)})
    return {
        **_ratios(overall, ""),
        **_ratios(strict, "strict_"),
        "true_entities": len(true_entities),
        "predicted_entities": len(predicted_entities),
        "per_type": {
            type: {**_ratios(row, ""), "support": int(row[3])}
            for type, row in zip(types, zip(*each))
        },
    }


def _seqeval() -> tuple[ModuleType, ModuleType, ModuleType]:
    try:
        from seqeval import scheme
        from seqeval.metrics import sequence_labeling, v1
    except ImportError as error:
        raise ImportError(
            f"Metrics of entities need seqeval. Install it with `pip install seqeval`. ({error})"
        ) from error
    return sequence_labeling, v1, scheme


def _ratios(row: Sequence[Any], prefix: str) -> dict[str, float]:
    names = ("precision", "recall", "f1")
    return {f"{prefix}{name}": float(value) for name, value in zip(names, row)}


def _checked(argument: str, tags: Tags, scheme: str) -> list[list[str]]:
    """Returns the tags as the lists of lists that seqeval expects."""
    sentences = [list(sentence) for sentence in tags]
    good: set[str] = set()
    for i, sentence in enumerate(sentences):
        for word, tag in enumerate(sentence):
            if tag in good:
                continue
            known = isinstance(tag, str) and _TAG.fullmatch(tag) is not None
            if not known or tag[0] not in _LETTERS[scheme]:
                raise ValueError(
                    f"`{argument}` must be tags of the scheme {scheme}. Received: {tag!r} in "
                    f"sentence {i + 1}, word {word + 1}"
                )
            good.add(tag)
    return sentences


def _check_lengths(true: list[list[str]], predicted: list[list[str]]) -> None:
    if not true or len(true) != len(predicted):
        raise ValueError(
            "`true_tags` and `predicted_tags` must hold the same sentences, at least one. "
            f"Received: {len(true)} and {len(predicted)} sentences"
        )
    for i, (right, given) in enumerate(zip(true, predicted)):
        if len(right) != len(given):
            raise ValueError(
                "`predicted_tags` must hold a tag for each word. Received: "
                f"{len(given)} tags for the {len(right)} words of sentence {i + 1}"
            )
