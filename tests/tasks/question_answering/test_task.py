import json

from kbert.data.questions.question_examples import QuestionExamples
from kbert.tasks.question_answering.task import TASK
from kbert.tasks.span_tagging.task import TASK as SPAN_TAGGING


def test_a_file_of_questions(tiny, tmp_path):
    config = tiny.reading(tmp_path / "o", "question-answering", tiny.questions)
    examples = TASK.read(config, "train")
    assert isinstance(examples, QuestionExamples) and len(examples) == 12
    assert TASK.source(config, "test") is None


def test_misaligned_answers_are_logged_with_their_ids(tiny, tmp_path, caplog):
    rows = [
        {"id": "moved", "question": "a", "context": "the red film", "answers": [["red", 0]]},
        {"id": "gone", "question": "a", "context": "the red film", "answers": [["blue", 4]]},
        {"id": "good", "question": "a", "context": "the red film", "answers": [["red", 4]]},
    ]
    for row in rows:
        ((text, start),) = row["answers"]
        row["answers"] = [{"text": text, "answer_start": start}]
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = tiny.reading(tmp_path / "o", "question-answering", str(file))
    examples = TASK.read(config, "train")
    assert examples.ids == ["moved", "good"] and examples.answers[0][0].start == 4
    assert "2 of 3 answers do not stand" in caplog.text
    assert "moved to the only place of their text: moved" in caplog.text
    assert "not in the context: gone" in caplog.text
    # Metrics compare texts: nothing is left out of what is measured.
    assert len(TASK.read(config, "validation")) == 3
    # Those of spans compare places.
    tagging = tiny.reading(tmp_path / "o", "span-tagging", str(file))
    found = SPAN_TAGGING.read(tagging, "validation")
    assert found.ids == ["moved", "good"] and found.answers[0][0].start == 4


def test_all_occurrences(tiny, tmp_path):
    row = {"id": "a", "question": "a", "context": "red and red", "answer": "red", "answer_start": 0}
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps(row))
    given = {"task": "question-answering", "file": str(file)}
    one = TASK.read(tiny.reading(tmp_path / "o", **given), "train")
    every = TASK.read(tiny.reading(tmp_path / "o", **given, all_occurrences=True), "train")
    assert [len(x.answers[0]) for x in (one, every)] == [1, 2]
