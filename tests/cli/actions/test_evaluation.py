import pytest

from kbert.cli.actions.evaluation import read_examples
from kbert.cli.actions.model_kinds import task_of
from kbert.tasks.regression.model import Regressor
from kbert.training.recipes.finetuning import train_once
from tests.checkpoints.synthetic_marian import write_marian

NONE = {"text_a": None, "text_b": None, "label": None}


def test_a_folder_of_marian_translates(tmp_path):
    assert task_of(write_marian(tmp_path / "model")) == "translation"


def test_columns_are_those_of_the_run_unless_given(finished_run, tiny, tmp_path):
    examples, task = read_examples(finished_run, tiny.texts["test"], (None, None, "dev"), NONE)
    assert len(examples) == 8 and task is None and examples.labels is not None
    file = tmp_path / "t.tsv"
    file.write_text("up\tgood\ndown\tbad\n")
    given = {"text_a": "1", "text_b": None, "label": "0"}
    examples, _ = read_examples(finished_run, file, (None, None, "dev"), given)
    assert examples.text_a == ["good", "bad"] and examples.labels == ["up", "down"]


def test_one_column_leaves_the_others_as_the_run_has_them(tiny, tmp_path):
    file = tmp_path / "t.tsv"
    rows = "red\tblue sun\tup\tsky\nred\tblue sun\tup\tsea\n"
    file.write_text("text\tbody\tlabel\ttopic\n" + rows * 4)
    settings = {"train": str(file), "validation": None, "text_a": "body", "label": "topic"}
    run = train_once(tiny.config(tmp_path / "run", **settings, epochs=1))
    for given, labels in ((None, {"sky", "sea"}), ("label", {"up"})):
        columns = {**NONE, "label": given}
        examples, _ = read_examples(run, file, (None, None, "dev"), columns)
        assert set(examples.text_a) == {"blue sun"} and set(examples.labels) == labels


def test_a_saved_model_tells_its_task(tiny, tmp_path):
    model = Regressor.from_pretrained(tiny.encoder, max_sequence_length=16, pair=True)
    saved = model.save_pretrained(tmp_path / "model")
    examples, _ = read_examples(saved, tiny.pairs, (None, None, "dev"), NONE)
    assert examples.labels[0] == 5.0


def test_something_must_be_read(finished_run):
    with pytest.raises(ValueError, match="`file` must be given without a GLUE task"):
        read_examples(finished_run, None, (None, None, "dev"), NONE)
