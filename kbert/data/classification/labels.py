"""Labels of examples: their names, and the checks before training."""

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from kbert.data.classification.text_pairs import TextExamples
from kbert.data.tables.table import nearest


def label_names(examples: TextExamples) -> list[str]:
    """Returns the sorted class names of examples.

    Warns (`UserWarning`) about names that occur once: these are often misspelt, and one example
    teaches little and cannot be in both the training and the validation data. Warns too about
    names that differ only in case or in spaces around them.

    Args:
        examples: examples with names or {class name: probability} as labels.

    Raises:
        ValueError: the examples have no labels, or labels that are not class names.
    """
    labels = required_labels(examples)
    if isinstance(labels[0], dict):
        return sorted({name for soft in labels for name in soft})
    if not isinstance(labels[0], str):
        raise ValueError(
            f"{examples.source}: the labels must name classes. Received: labels such as "
            f"{labels[0]!r}"
        )
    first = {name: line for name, line in zip(reversed(labels), reversed(examples.lines))}
    single = sorted(name for name, count in Counter(labels).items() if count == 1)
    if single:
        listed = ", ".join(f"{name!r} (line {first[name]})" for name in single[:10])
        warnings.warn(
            f"{examples.source}: {len(single)} of {len(first)} labels occur only once: "
            f"{listed}{', ...' if len(single) > 10 else ''}. Are they misspelt?",
            stacklevel=2,
        )
    _warn_of_lookalikes(examples.source, first)
    return sorted(first)


def check_labels(examples: TextExamples, names: Sequence[str]) -> None:
    """Checks that every label of the examples is one of `names`.

    Args:
        examples: examples with class labels or soft labels, such as validation data.
        names: the classes that the model knows.

    Raises:
        ValueError: the examples have no labels, or an unknown one; the message names the
            file, the line and the nearest known name.
    """
    known = set(names)
    for label, line in zip(required_labels(examples), examples.lines):
        if isinstance(label, list):
            if len(label) != len(names):
                raise ValueError(
                    f"{examples.source}, line {line}: the label must hold {len(names)} "
                    f"probabilities, one a class. Received: {len(label)}"
                )
            continue
        for name in label if isinstance(label, dict) else (label,):
            if name not in known:
                listed = ", ".join(f"`{x}`" for x in list(names)[:20])
                raise ValueError(
                    f"{examples.source}, line {line}: the label must be one of {listed}"
                    f"{', ...' if len(names) > 20 else ''}. Received: {name!r}."
                    f"{nearest(str(name), names)}"
                )


def required_labels(examples: TextExamples) -> Any:
    """Returns the labels of examples that must have them.

    Raises:
        ValueError: the examples have no labels.
    """
    if examples.labels is None:
        raise ValueError(
            f"{examples.source}: the examples must have labels. Received: none (no label column, "
            "or one that is empty in every row)"
        )
    return examples.labels


def label_probabilities(examples: TextExamples, names: Sequence[str]) -> np.ndarray:
    """Returns the labels as float32 probabilities, shape (examples, classes).

    Hard labels become one-hot rows. Classes that a soft label does not name get 0.

    Args:
        examples: examples with class labels or soft labels.
        names: the classes, in the order of the columns.

    Raises:
        ValueError: the examples have no labels, or a label is not one of `names`.
    """
    check_labels(examples, names)
    labels = required_labels(examples)
    if isinstance(labels[0], list):
        return np.asarray(labels, dtype="float32")
    column = {name: i for i, name in enumerate(names)}
    matrix = np.zeros((len(labels), len(names)), dtype="float32")
    for i, label in enumerate(labels):
        for name, probability in (label if isinstance(label, dict) else {label: 1.0}).items():
            matrix[i, column[name]] = probability
    return matrix


def _warn_of_lookalikes(source: str, first: dict[str, int]) -> None:
    groups: dict[str, list[str]] = {}
    for name in sorted(first):
        groups.setdefault(name.strip().casefold(), []).append(name)
    alike = [names for names in groups.values() if len(names) > 1]
    if alike:
        listed = "; ".join(
            " and ".join(f"{name!r} (line {first[name]})" for name in names) for names in alike
        )
        warnings.warn(
            f"{source}: labels that differ only in case or spaces are different classes: {listed}.",
            stacklevel=3,
        )
