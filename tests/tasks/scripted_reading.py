"""A model that gives the answers it was made with, and questions by hand."""

from kbert.data.questions.question_examples import QuestionExamples


def questions(answers):
    count = len(answers)
    return QuestionExamples(
        [f"q{i}" for i in range(count)],
        ["?"] * count,
        ["one two"] * count,
        answers,
        [""] * count,
        "by hand",
        [f"line {i}" for i in range(count)],
    )


class Scripted:
    """A model that gives the answers it was made with."""

    null_threshold = None
    outside_bias = 0.0

    def __init__(self, rows):
        self.rows = rows

    def predict(self, examples):
        return self.rows

    def predict_tags(self, words):
        return self.rows
