import json

import pytest

from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.tasks.ner.task import TASK, read_sentences, tag_names


def test_a_file_of_sentences(tiny, tmp_path):
    sentences = TASK.read(tiny.reading(tmp_path / "o", "ner", tiny.sentences), "train")
    assert isinstance(sentences, TaggedSentences) and sentences.labels == ["COLOUR", "SKY"]


def test_sentences_in_the_scheme_of_the_run(tiny, tmp_path):
    rows = tmp_path / "rows.jsonl"
    entities = [{"start": 4, "end": 12, "label": "SKY"}]
    rows.write_text(json.dumps({"text": "the blue sun.", "entities": entities}))
    assert read_sentences(str(rows), "iobes").tags == [["O", "B-SKY", "E-SKY", "O"]]
    found = read_sentences(tiny.sentences, "iobes")
    assert found.tags[0] == ["O", "S-COLOUR", "S-SKY", "O", "O"]
    with pytest.raises(ValueError, match="`label` must be the number of a column. Received: labe"):
        read_sentences(tiny.sentences, "iobes", "tag")


def test_sentences_without_an_entity_teach_nothing(tiny, tmp_path):
    config = tiny.reading(tmp_path / "o", "ner", tiny.sentences)
    nothing = TaggedSentences([["a", "b"]], [["O", "O"]], [0], "x.conll", [1])
    with pytest.raises(ValueError, match="x.conll: the training sentences must have an entity"):
        TASK.labels(config, nothing, None)


def test_tags_without_a_type_are_no_entities(tiny, tmp_path):
    config = tiny.reading(tmp_path / "o", "ner", tiny.sentences)
    untyped = TaggedSentences([["a", "b"]], [["B", "O"]], [0], "x.conll", [1])
    with pytest.raises(ValueError, match="x.conll: the tags must have the types .*such as B al"):
        TASK.labels(config, untyped, None)


def test_tag_names():
    assert tag_names(["A", "B"], "bio") == ["O", "B-A", "I-A", "B-B", "I-B"]
    assert tag_names(["A"], "iobes") == ["O", "B-A", "I-A", "E-A", "S-A"]
