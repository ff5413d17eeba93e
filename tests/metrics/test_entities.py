"""Metrics of entities. Expected numbers by hand, and an example from seqeval's own pages."""

import json

import pytest

from kbert.metrics.entities import entity_metrics


def split(*sentences):
    return [sentence.split() for sentence in sentences]


TRUE = split("B-PER I-PER O B-LOC", "O B-ORG", "B-LOC O")
# PER found; LOC of the first sentence named ORG; ORG found; LOC of the last missed; a wrong PER.
PREDICTED = split("B-PER I-PER O B-ORG", "O B-ORG", "O B-PER")


def test_by_hand(recwarn):
    metrics = entity_metrics(TRUE, PREDICTED)
    # 2 of 4 predicted entities are right, 2 of 4 right ones were found.
    assert (metrics["precision"], metrics["recall"], metrics["f1"]) == (0.5, 0.5, 0.5)
    assert (metrics["strict_precision"], metrics["strict_f1"]) == (0.5, 0.5)
    assert (metrics["true_entities"], metrics["predicted_entities"]) == (4, 4)
    assert list(metrics["per_type"]) == ["LOC", "ORG", "PER"]
    ratios = {"LOC": (0, 0, 0, 2), "ORG": (0.5, 1, 2 / 3, 1), "PER": (0.5, 1, 2 / 3, 1)}
    for type, (precision, recall, f1, support) in ratios.items():
        assert metrics["per_type"][type] == pytest.approx(
            {"precision": precision, "recall": recall, "f1": f1, "support": support}
        )
    json.dumps(metrics)
    assert not recwarn.list


def test_the_example_of_seqeval():
    # README of seqeval: a MISC that begins one word early, and a right PER: F1 0.50.
    true = split("O O O B-MISC I-MISC I-MISC O", "B-PER I-PER O")
    predicted = split("O O B-MISC I-MISC I-MISC I-MISC O", "B-PER I-PER O")
    metrics = entity_metrics(true, predicted)
    assert metrics["f1"] == 0.5
    assert metrics["per_type"]["PER"]["f1"] == 1.0
    assert metrics["per_type"]["MISC"]["f1"] == 0.0


def test_strict_mode_refuses_what_the_scheme_does_not_allow():
    metrics = entity_metrics(split("B-PER I-PER O"), split("I-PER I-PER O"))
    assert (metrics["f1"], metrics["strict_f1"]) == (1.0, 0.0)
    # In IOB1 the first of these is impossible and the second is right.
    metrics = entity_metrics(split("I-PER I-PER O"), split("I-PER I-PER O"), scheme="iob1")
    assert (metrics["f1"], metrics["strict_f1"]) == (1.0, 1.0)
    metrics = entity_metrics(split("S-PER O"), split("B-PER O"), scheme="iobes")
    assert (metrics["f1"], metrics["strict_f1"]) == (1.0, 0.0)


def test_sentences_stay_apart():
    # Written one behind the other, B-A and I-A would make one entity.
    metrics = entity_metrics(split("O B-A", "B-A"), split("O B-A", "I-A"))
    assert (metrics["f1"], metrics["predicted_entities"]) == (1.0, 2)


def test_nothing_there(recwarn):
    metrics = entity_metrics(split("O O"), split("O O"))
    assert (metrics["precision"], metrics["recall"], metrics["f1"]) == (0.0, 0.0, 0.0)
    assert metrics["strict_f1"] == 0.0
    assert metrics["per_type"] == {}
    assert entity_metrics(split("O B-A"), split("O O"))["f1"] == 0.0
    assert entity_metrics([["O"], []], [["O"], []])["f1"] == 0.0
    assert not recwarn.list


def test_tuples_hyphens_and_tags_without_type():
    true = (("B-creative-work", "I-creative-work"), ("O", "O"))
    assert list(entity_metrics(true, true)["per_type"]) == ["creative-work"]
    metrics = entity_metrics(split("B I O B"), split("B I O O"))
    assert metrics["per_type"]["_"]["recall"] == 0.5


@pytest.mark.parametrize(
    "true, predicted, options, message",
    [
        ([], [], {}, r"must hold the same sentences, at least one\. Received: 0 and 0 sentences"),
        (split("O"), split("O", "O"), {}, r"Received: 1 and 2 sentences"),
        (split("O", "O O"), split("O", "O"), {}, r"1 tags for the 2 words of sentence 2"),
        (split("O"), split("X-A"), {}, r"`predicted_tags` must be tags of the scheme bio.*'X-A'"),
        (split("O", "O NNP"), split("O", "O O"), {}, r"`true_tags` .*'NNP' in sentence 2, word 2"),
        (split("E-A"), split("O"), {}, r"`true_tags` must be tags of the scheme bio.*'E-A'"),
        (split("O"), [[None]], {}, r"`predicted_tags` must be tags .* Received: None"),
        (split("O"), split("O"), {"scheme": "ioe"}, r"`scheme` must be one of .*scheme='ioe'"),
    ],
)
def test_errors(true, predicted, options, message):
    with pytest.raises(ValueError, match=message):
        entity_metrics(true, predicted, **options)
