import warnings

import pytest

from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.tasks.ner.task import measure_entities
from tests.tasks.scripted_reading import Scripted


def test_entities():
    model = Scripted([["B-A", "O"]])
    model.labels = ["O", "B-A", "I-A"]
    sentences = TaggedSentences([["a", "b"]], [["B-A", "B-A"]], [0], "by hand", [1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics = measure_entities(model, sentences)
    assert (metrics["precision"], metrics["recall"]) == (1.0, 0.5)


def test_entities_of_a_head_whose_tags_are_not_strict():
    """IOB1: an I- behind O, or behind another type, begins an entity."""
    gold = ["B-A", "I-A", "O", "B-A", "B-C", "B-C"]
    model = Scripted([["I-A", "I-A", "O", "I-A", "I-C", "B-C"]])
    model.labels, model.strict_tags = ["O", "B-A", "I-A", "B-C", "I-C"], False
    sentences = TaggedSentences([list("abcdef")], [gold], [0], "by hand", [1])
    metrics = measure_entities(model, sentences)
    assert (metrics["f1"], metrics["strict_f1"]) == (1.0, 1.0)


def test_entities_of_other_types():
    model = Scripted([["B-A", "O"]])
    model.labels = ["O", "B-A", "I-A"]
    sentences = TaggedSentences([["a", "b"]], [["B-C", "B"]], [0], "by hand", [1])
    message = r"^by hand: the model finds no entities of the types \(none\), C\. Its types: A$"
    with pytest.warns(UserWarning, match=message):
        assert measure_entities(model, sentences)["f1"] == 0
