"""Metrics of entities in tagged sentences, by seqeval.

Source: Nakayama, "seqeval: A Python framework for sequence labeling evaluation" (2018); its default
mode counts as conlleval of the CoNLL-2003 shared task does.
"""

import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any

# Scheme -> its name in seqeval, and the letters of its tags.
_SCHEMES = {"bio": ("IOB2", "BIO"), "iob1": ("IOB1", "BIO"), "iobes": ("IOBES", "BIESO")}
_TAG = re.compile(r"O|[BIES](?:-.+)?", re.DOTALL)

Tags = Sequence[Sequence[str]]


def entity_metrics(true_tags: Tags, predicted_tags: Tags, scheme: str = "bio") -> dict[str, Any]:
    """Returns precision, recall and F1 of entities, as a JSON-serializable dict.

    An entity counts as found if its first word, its last word and its type are right. The default
    mode reads tags that are invalid in their scheme as conlleval does; the strict mode counts only
    entities that the scheme allows, "bio", "iob1" or "iobes". Ratios of 0 / 0 are 0. The tags are
    one list per sentence, of the same lengths.

    Returns:
        "precision", "recall" and "f1" over all entities; "strict_precision", "strict_recall" and
        "strict_f1"; "true_entities" and "predicted_entities", their numbers in the default mode;
        "per_type", for each type that occurs "precision", "recall", "f1" and "support", the number
        of gold entities. (Tags without a type count as type "_".)
    """
    if scheme not in _SCHEMES:
        raise ValueError(f"`scheme` must be one of {tuple(_SCHEMES)}. Received: scheme={scheme!r}")
    true = _checked("true_tags", true_tags, scheme)
    predicted = _checked("predicted_tags", predicted_tags, scheme)
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
    labeling, v1, schemes = _seqeval()
    options = {"zero_division": 0}
    overall = labeling.precision_recall_fscore_support(true, predicted, average="micro", **options)
    each = labeling.precision_recall_fscore_support(true, predicted, average=None, **options)
    strict = v1.precision_recall_fscore_support(
        true, predicted, average="micro", scheme=getattr(schemes, _SCHEMES[scheme][0]), **options
    )
    entities = [labeling.get_entities(tags) for tags in (true, predicted)]
    # seqeval returns the types' rows without their names, in sorted order.
    types = sorted({type for found in entities for type, _, _ in found})
    rows = dict(zip(types, zip(*each)))
    return {
        **_ratios(overall, ""),
        **_ratios(strict, "strict_"),
        "true_entities": len(entities[0]),
        "predicted_entities": len(entities[1]),
        "per_type": {t: {**_ratios(row, ""), "support": int(row[3])} for t, row in rows.items()},
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
            if not known or tag[0] not in _SCHEMES[scheme][1]:
                raise ValueError(
                    f"`{argument}` must be tags of the scheme {scheme}. Received: {tag!r} in "
                    f"sentence {i + 1}, word {word + 1}"
                )
            good.add(tag)
    return sentences
