import json

import pytest

from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.data.questions.question_examples import QuestionExamples
from kbert.training.finetuning.reading_examples import read_reading, read_sentences, tag_names


def test_questions_and_sentences_by_task(tiny, tmp_path):
    config = tiny.reading(tmp_path / "o", "question-answering", tiny.questions)
    examples = read_reading(config, "train")
    assert isinstance(examples, QuestionExamples) and len(examples) == 12
    assert read_reading(config, "test") is None
    sentences = read_reading(tiny.reading(tmp_path / "o", "ner", tiny.sentences), "train")
    assert isinstance(sentences, TaggedSentences) and sentences.labels == ["COLOUR", "SKY"]


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
    examples = read_reading(config, "train")
    assert examples.ids == ["moved", "good"] and examples.answers[0][0].start == 4
    assert "2 of 3 answers do not stand" in caplog.text
    assert "moved to the only place of their text: moved" in caplog.text
    assert "not in the context: gone" in caplog.text
    # Metrics compare texts: nothing is left out of what is measured.
    assert len(read_reading(config, "validation")) == 3
    # Those of spans compare places.
    tagging = tiny.reading(tmp_path / "o", "span-tagging", str(file))
    found = read_reading(tagging, "validation")
    assert found.ids == ["moved", "good"] and found.answers[0][0].start == 4


def test_all_occurrences(tiny, tmp_path):
    row = {"id": "a", "question": "a", "context": "red and red", "answer": "red", "answer_start": 0}
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps(row))
    given = {"task": "question-answering", "file": str(file)}
    one = read_reading(tiny.reading(tmp_path / "o", **given), "train")
    every = read_reading(tiny.reading(tmp_path / "o", **given, all_occurrences=True), "train")
    assert [len(x.answers[0]) for x in (one, every)] == [1, 2]


def test_sentences_in_the_scheme_of_the_run(tiny, tmp_path):
    rows = tmp_path / "rows.jsonl"
    entities = [{"start": 4, "end": 12, "label": "SKY"}]
    rows.write_text(json.dumps({"text": "the blue sun.", "entities": entities}))
    config = tiny.reading(tmp_path / "o", "ner", str(rows), tag_scheme="iobes")
    assert read_sentences(str(rows), config, "train").tags == [["O", "B-SKY", "E-SKY", "O"]]
    found = read_sentences(tiny.sentences, config, "train")
    assert found.tags[0] == ["O", "S-COLOUR", "S-SKY", "O", "O"]
    with pytest.raises(ValueError, match="`label` must be the number of a column. Received: labe"):
        read_sentences(tiny.sentences, config.with_values(label="tag"), "train")


def test_tag_names():
    assert tag_names(["A", "B"], "bio") == ["O", "B-A", "I-A", "B-B", "I-B"]
    assert tag_names(["A"], "iobes") == ["O", "B-A", "I-A", "E-A", "S-A"]
