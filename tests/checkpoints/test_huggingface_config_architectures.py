import pytest

from kbert.checkpoints.huggingface_config import check_architecture, choose_architecture

CLASSIFIER = ["classifier.weight", "classifier.bias"]
MASKED = ["cls.predictions.bias"]
NEXT = ["cls.seq_relationship.weight"]


@pytest.mark.parametrize(
    ("heads", "pooler", "wanted", "expected"),
    [
        ([], True, None, "BertModel"),
        ([], False, "BertForMaskedLM", "BertModel"),
        (CLASSIFIER, True, None, "BertForSequenceClassification"),
        (CLASSIFIER, False, None, "BertForTokenClassification"),
        (CLASSIFIER, True, "BertForTokenClassification", "BertForTokenClassification"),
        (CLASSIFIER, True, "BertForMultipleChoice", "BertForMultipleChoice"),
        (CLASSIFIER, True, "BertModel", "BertForSequenceClassification"),
        (["qa_outputs.weight"], False, None, "BertForQuestionAnswering"),
        (["qa_outputs.weight"], True, None, "BertForQuestionAnswering"),
        (MASKED, True, None, "BertForMaskedLM"),
        (NEXT, True, None, "BertForNextSentencePrediction"),
        # bert-base-uncased as published: the class it names has but a part of its heads.
        (MASKED + NEXT, True, "BertForMaskedLM", "BertForPreTraining"),
    ],
)
def test_the_choice(heads: list[str], pooler: bool, wanted: str | None, expected: str) -> None:
    assert choose_architecture(heads, pooler, wanted) == expected


@pytest.mark.parametrize(
    ("heads", "wanted", "expected"),
    [
        ([], None, "BertModel"),
        (MASKED, None, "BertLMHeadModel"),
        (MASKED, "BertForMaskedLM", "BertLMHeadModel"),
        (CLASSIFIER, None, "BertForTokenClassification"),
        (CLASSIFIER, "BertForSequenceClassification", "BertForTokenClassification"),
    ],
)
def test_the_choice_for_a_causal_encoder(
    heads: list[str], wanted: str | None, expected: str
) -> None:
    assert choose_architecture(heads, False, wanted, causal=True) == expected


def test_no_class_has_such_heads() -> None:
    with pytest.raises(ValueError, match="`heads` must be those of one of BertModel, "):
        choose_architecture(["qa_outputs.weight", *CLASSIFIER], True, None)


def test_the_check() -> None:
    check_architecture("BertModel", [], False)
    check_architecture("BertForTokenClassification", CLASSIFIER, False)
    with pytest.raises(ValueError, match=r"with the heads \(none\). Received: architecture='Bert'"):
        check_architecture("Bert", [], True)
    with pytest.raises(ValueError, match="a class without a pooler, as the checkpoint has none"):
        check_architecture("BertForSequenceClassification", CLASSIFIER, False)
    with pytest.raises(ValueError, match="for a causal encoder. .*='BertForSequenceClassificat"):
        check_architecture("BertForSequenceClassification", CLASSIFIER, True, causal=True)
    check_architecture("BertLMHeadModel", MASKED, True, causal=True)
