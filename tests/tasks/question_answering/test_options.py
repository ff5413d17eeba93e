import pytest

from kbert.tasks.question_answering.options import QuestionAnsweringOptions


def test_its_keys_and_their_kinds():
    keys = {field.name for field in QuestionAnsweringOptions.options()}
    assert {"all_occurrences", "stride"} <= keys
    assert QuestionAnsweringOptions(stride=0, other_windows=0)
    told = "`max_answer_length` must be a whole number, at least 1, or nothing"
    with pytest.raises(ValueError, match=told):
        QuestionAnsweringOptions(max_answer_length=0)
