from types import SimpleNamespace

import numpy as np

from kbert.tasks.ner.task import TASK as NER
from kbert.tasks.span_tagging.task import TASK, measure_spans


def test_labels_without_types_of_another_package_are_its_own():
    name = "BertForTokenClassification"
    for labels, ours in ((["B", "I", "O"], True), (["O", "B-A", "I-A"], False)):
        named = {"id2label": dict(enumerate(labels))}
        checkpoint = SimpleNamespace(source_config=named, heads={})
        assert TASK.is_huggingface(name, checkpoint) is ours
        assert NER.is_huggingface(name, checkpoint) is not ours


def test_an_earlier_bias_is_forgotten():
    TASK.reset(model := SimpleNamespace(outside_bias=3.0))
    assert model.outside_bias == 0.0


def test_a_blank_alone_is_no_answer():
    """A tokenizer of bytes has tokens of a blank alone, whose trimmed place is empty."""
    answer = SimpleNamespace(start=0, text="ann")
    examples = SimpleNamespace(answers=[[answer]], questions=["who"], contexts=["ann  came"])
    row = {"starts": np.array([0, 4]), "ends": np.array([3, 4]), "count": 2}
    model = SimpleNamespace(predict=lambda examples: [row], outside_bias=0.0)
    assert measure_spans(model, examples)["span_exact_f1"] == 1.0
