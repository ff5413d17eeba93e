import pytest

from kbert.tasks.options import TaskOptions

KEYS = {field.name for field in TaskOptions.options()}


def test_the_keys_of_heads_and_their_kinds():
    assert {"dropout", "head"} <= KEYS
    assert TaskOptions(head="two_layer", dropout=0.0)
    told = "`dropout` must be a number in .0, 1.. Received: dropout=1.0"
    with pytest.raises(ValueError, match=told):
        TaskOptions(dropout=1.0)


def test_the_keys_of_classes_and_their_kinds():
    assert {"labels", "text_a"} <= KEYS
    assert TaskOptions(class_weights={"a": 1, "b": 2.5})
    with pytest.raises(ValueError, match="`labels` must be a list of two different names or more"):
        TaskOptions(labels=["a", "a"])


def test_the_keys_of_entities_and_their_kinds():
    assert {"label", "tag_scheme"} <= KEYS
    assert TaskOptions(tag_scheme="iobes", label=3)
    told = "`tag_scheme` must be one of bio, iobes. Received: tag_scheme=.bilou."
    with pytest.raises(ValueError, match=told):
        TaskOptions(tag_scheme="bilou")


def test_the_keys_of_questions_and_their_kinds():
    assert {"all_occurrences", "stride"} <= KEYS
    assert TaskOptions(stride=0, other_windows=0)
    told = "`max_answer_length` must be a whole number, at least 1, or nothing"
    with pytest.raises(ValueError, match=told):
        TaskOptions(max_answer_length=0)


def test_the_keys_of_span_tagging_and_their_kinds():
    assert {"soft", "dropout", "stride"} <= KEYS
    assert TaskOptions(soft=False)
    with pytest.raises(ValueError, match="`soft` must be true or false. Received: soft=1"):
        TaskOptions(soft=1)


def test_the_keys_of_several_labels_and_their_kinds():
    assert {"label_separator", "threshold", "tune_thresholds"} <= KEYS
    assert TaskOptions(label_separator=" ", threshold={"a": 0.2, "b": 0.9})
    told = r"`threshold` must be a number in \(0, 1\), or {label: number}. Received: threshold=1"
    with pytest.raises(ValueError, match=told):
        TaskOptions(threshold=1)
