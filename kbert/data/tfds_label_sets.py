"""Texts with any number of labels each from TensorFlow Datasets (TFDS).

Source: tensorflow.org/datasets/catalog, `goemotions` and `civil_comments`.
"""

import os
from typing import Any

from kbert.data.classification.text_pairs import TextExamples
from kbert.data.tfds_dataset import TfdsDataset
from kbert.data.tfds_examples import check_features


def read_tfds_label_sets(
    name: str,
    split: str = "train",
    data_dir: str | os.PathLike[str] | None = None,
    *,
    text_a: str | None = None,
    text_b: str | None = None,
    label: str = "label",
    manual_dir: str | os.PathLike[str] | None = None,
    check_manual_files: bool = True,
) -> TextExamples:
    """Reads texts with any number of labels each; arguments not listed are those of `read_tfds`.

    Args:
        label: feature that is a sequence of class labels; or features of true and false, or of
            numbers in [0, 1], with commas between, whose names are the labels ("goemotions").
    """
    dataset = TfdsDataset(name, data_dir)
    features, names = dataset.features, [one.strip() for one in label.split(",")]
    for one in names:
        check_features(name, list(features), {"text_a": text_a, "text_b": text_b, "label": one})
    found, source = dataset.rows(split, manual_dir, check_manual_files)
    rows = list(found)
    of_one: Any = getattr(features[names[0]], "feature", None)
    if len(names) == 1 and not hasattr(of_one, "int2str"):
        raise ValueError(
            f"`label` must be a sequence of class labels of {name}, or several features. Received: "
            f"label={label!r}"
        )
    if len(names) == 1:
        labels: Any = [[of_one.int2str(int(i)) for i in row[names[0]]] for row in rows]
    else:
        labels = [{one: float(row[one]) for one in names} for row in rows]
    return TextExamples(
        text_a=[row[text_a].decode("utf-8") for row in rows],
        text_b=None if text_b is None else [row[text_b].decode("utf-8") for row in rows],
        labels=labels,
        ids=None,
        source=source,
        lines=list(range(1, len(rows) + 1)),
    )
