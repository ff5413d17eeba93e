"""Columns of a file that a model reads: those of its training, of its inputs, or of options."""

import shutil
from pathlib import Path

import pytest

from kbert.cli.actions.model_kinds import (
    check_columns_to_read,
    check_measured,
    columns_to_read,
)
from kbert.training.runs.run_directory import write_config


def with_config(run, folder, config):
    """What a run's configuration alone says; it has no model."""
    folder.mkdir()
    write_config(config, folder)
    shutil.copy2(run / "metrics.json", folder)
    return folder


def test_the_columns_that_a_run_was_trained_with(finished_run, tiny, tiny_pairs, tmp_path):
    """Those that are given, those of the run, those that training looks for, the inputs' names."""
    one, pair = ["text"], ["text_a", "text_b"]
    made = tiny.config(tmp_path / "o", text_a="mail")
    mail = with_config(finished_run, tmp_path / "mail", made)
    both = with_config(finished_run, tmp_path / "both", made.with_values(text_b="reply"))
    index = with_config(finished_run, tmp_path / "index", made.with_values(text_a=0))
    config = tiny_pairs.config(tmp_path / "o", source_column="en")
    translator = with_config(finished_run, tmp_path / "translator", config)
    assert columns_to_read(mail, one) == [["mail"], ["text"]]
    assert columns_to_read(mail, one, ["body", None]) == [["body"]]
    assert columns_to_read(both, pair) == [["mail", "reply"], pair]
    assert columns_to_read(both, pair, [None, "body"]) == [["mail", "body"]]
    assert columns_to_read(translator, one) == [["en"], ["text"]]
    assert columns_to_read(translator, one, ["body", None]) == [["body"]]
    # An index is of a file without a header; and here none was given.
    for run in (index, finished_run):
        assert columns_to_read(run, one) == [["text_a"], ["text"], ["sentence"], ["text"]]
    assert ["premise", "hypothesis"] in columns_to_read(finished_run, pair)
    for model in (finished_run / "model", Path("minilm-squad")):
        assert columns_to_read(model, one) == [["text"]]
        assert columns_to_read(model, pair, ["a", "b"]) == [["a", "b"]]
    with pytest.raises(ValueError, match="`--text-b` must be left out for a model of one.*: b"):
        columns_to_read(mail, one, [None, "b"])
    with pytest.raises(ValueError, match="must be given together for a model that.*: a alone"):
        columns_to_read(Path("minilm-squad"), ["question", "context"], ["a", None])


@pytest.mark.parametrize(
    "header, inputs, given, told",
    [
        (
            *("review,verdict", ["text"], ()),
            "line 1: the file must have the column `text`, which the model reads; --text-a COLUMN "
            "names another. Received: columns `review`, `verdict`",
        ),
        ("Texts,id", ["text"], (), "columns `Texts`, `id`. Did you mean `Texts`?"),
        (
            *("question,answer", ["question", "context"], ()),
            "the columns `question` and `context`, which the model reads; --text-a COLUMN and "
            "--text-b COLUMN name others. Received: columns `question`, `answer`",
        ),
        (
            *("review,text", ["text"], ["reviews", None]),
            "the column `reviews`, which the model reads. Received: columns `review`, `text`. Did "
            "you mean `review`?",
        ),
    ],
)
def test_a_header_without_the_columns(tmp_path, header, inputs, given, told):
    source = tmp_path / "films.csv"
    source.write_text(f"{header}\na,b\n")
    with pytest.raises(ValueError) as error:
        check_columns_to_read(Path("minilm-squad"), source, inputs, given)
    message = str(error.value)
    assert message.startswith(f"{source}, line 1: the file must have") and message.endswith(told)


def test_the_columns_of_labelled_examples_to_measure_an_export_with(finished_run, tmp_path):
    (file := tmp_path / "dev.tsv").write_text("mail\tkind\nred\tup\n")
    with pytest.raises(ValueError) as caught:
        check_measured(finished_run / "model", file)
    assert str(caught.value) == (
        "`--measure` must have columns of the usual names, or of the run's training. "
        f"{file}, line 1: `text_a` must be given where no column is called text_a, sentence1, "
        "question1, premise, question, text1, text, sentence; `label` must be given where no "
        "column is called label, gold_label, labels, category, class. "
        "Received: columns `mail`, `kind`"
    )
    file.write_text("text\tlabel\nred\tup\n")
    check_measured(finished_run / "model", file)
