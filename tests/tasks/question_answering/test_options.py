import pytest

from kbert.tasks.question_answering.options import QuestionOptions


def test_the_keys_and_their_kinds():
    assert QuestionOptions(max_answer_length=1, all_occurrences=True).max_answer_length == 1
    message = "`max_answer_length` must be a whole number, at least 1"
    with pytest.raises(ValueError, match=message):
        QuestionOptions(max_answer_length=0)
