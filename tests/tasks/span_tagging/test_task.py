from types import SimpleNamespace

from kbert.tasks.ner.task import TASK as NER
from kbert.tasks.span_tagging.task import TASK


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
