"""Evaluation of named-entity recognition on sentences of given words."""

import warnings
from typing import Any

from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.metrics.entities import entity_metrics
from kbert.text.sequences.entities import entity_types


def measure_entities(model: Any, sentences: TaggedSentences) -> dict[str, Any]:
    """Evaluates an `EntityRecognizer` on sentences of given words.

    Args:
        model: The model.
        sentences: Sentences with tags in the model's scheme. A warning names entity types that the
            model does not know.
    """
    known = entity_types(model.labels)
    tags = sorted({tag for row in sentences.tags or [] for tag in row})
    unknown = [kind or "(none)" for kind in entity_types(tags) if kind not in known]
    if unknown:
        warnings.warn(
            f"{sentences.source}: the model finds no entities of the types {', '.join(unknown)}. "
            f"Its types: {', '.join(kind or '(none)' for kind in known)}",
            stacklevel=2,
        )
    scheme = "iobes" if any(tag[:2] in ("E-", "S-") for tag in model.labels) else "bio"
    return entity_metrics(sentences.tags or [], model.predict_tags(sentences.words), scheme)
