"""Tiny files, and a classifier on their encoder."""

import pytest

from kbert.data.classification.text_pairs import TextExamples
from kbert.tasks.classification.model import Classifier
from tests.training.conftest import tiny  # noqa: F401


def texts(*text_a, text_b=None):
    return TextExamples(list(text_a), text_b, None, None, "here", list(range(len(text_a))))


@pytest.fixture(scope="module")
def classifier(tiny):  # noqa: F811
    return Classifier.from_pretrained(tiny.encoder, labels=["a", "b"], max_sequence_length=6)
