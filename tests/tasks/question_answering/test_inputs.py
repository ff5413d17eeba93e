"""The forms of questions with contexts."""

import re

import numpy as np
import pytest
import tensorflow as tf

from kbert.data.questions.question_examples import QuestionExamples
from kbert.tasks.question_answering.inputs import QuestionInputs, read_question_inputs

Q, C = ["Who?", b"What?"], ["Ada.", "A lamp."]
EXAMPLES = QuestionExamples(["1", "2"], Q, C, [[], []], ["", ""], "here", ["line 1", "line 2"])


def bytes_of(column):
    return [text if isinstance(text, bytes) else text.encode() for text in column]


@pytest.mark.parametrize(
    "x",
    [
        {"question": Q, "context": C},
        {"context": tuple(C), "question": tuple(Q)},
        (Q, C),
        (np.array(Q, object), tf.constant(C)),
        {"question": np.array(Q, object), "context": np.array(C)},
        EXAMPLES,
    ],
)
def test_accepted_forms(x):
    found = read_question_inputs(x)
    assert isinstance(found, QuestionInputs) and len(found) == 2
    assert bytes_of(found.questions) == bytes_of(Q) and bytes_of(found.contexts) == bytes_of(C)


def test_no_questions():
    for x in (([], []), {"question": [], "context": []}, EXAMPLES.select([])):
        assert len(read_question_inputs(x)) == 0


@pytest.mark.parametrize(
    "x",
    [
        {"token_ids": np.zeros((2, 3), int)},
        np.zeros((2, 3)),
        (np.zeros(2), np.zeros(2)),
        tf.data.Dataset.range(3),
        None,
    ],
)
def test_anything_else_is_none(x):
    assert read_question_inputs(x) is None


@pytest.mark.parametrize(
    "x, message",
    [
        (
            {"question": Q, "text": C},
            '`x`, a dict of texts, must have the keys "question" and "context". Received: '
            "['question', 'text']",
        ),
        (
            {"question": Q},
            '`x`, a dict of texts, must have the keys "question" and "context". '
            "Received: ['question']",
        ),
        (
            {"question": "Who?", "context": C},
            "`question` must be a list of texts. Received: question='Who?'",
        ),
        ((Q, "Ada."), "`context` must be a list of texts. Received: context='Ada.'"),
        ((Q, C[:1]), "`context` must be as long as `question`. Received: 1 and 2"),
        (
            "Who?",
            "`x` must be questions with contexts: a dict of two lists or a tuple of two. "
            "Received: str of texts",
        ),
        (Q, "`x` must be questions with contexts: a dict of two lists or a tuple of two."),
        ([("Who?", "Ada.")], "tuple of two. Received: list that begins with ('Who?', 'Ada.')"),
        ([{"question": "Who?"}], "tuple of two. Received: list that begins with {'question': "),
    ],
)
def test_wrong_forms(x, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_question_inputs(x)


def test_a_missing_text_is_named():
    message = "`context[1]` must be str or bytes. Received: None"
    with pytest.raises(TypeError, match=re.escape(message)):
        read_question_inputs((Q, ["Ada.", None]))
    with pytest.raises(TypeError, match=re.escape("`question[0]` must be str or bytes.")):
        read_question_inputs(([3, "Who?"], C))
