"""Reading of the nine GLUE tasks and the diagnostic set.

The fixtures under fixtures/glue have the official columns, and rows written for these tests; what
is expected of them was read off by eye. The row counts of the real data are the published ones.
"""

import gzip
import shutil
from pathlib import Path

import pytest

from kbert.data.classification.glue_tasks import (
    GLUE_TASKS,
    check_glue,
    glue_split,
    glue_task,
    read_glue,
)

FIXTURES = Path(__file__).parents[1] / "fixtures" / "glue"

# task, first text of train, its second text, labels of train, labels of dev, ids of test
LAYOUTS = [
    (
        "CoLA",
        "The kettle sang before the guests had come.",
        None,
        ["acceptable", "unacceptable", "acceptable"],
        ["acceptable", "unacceptable"],
    ),
    (
        "SST-2",
        "a warm and clever film ",
        None,
        ["positive", "negative", "negative"],
        ["positive", "negative"],
    ),
    (
        "MRPC",
        'The mayor called the plan " a gift to the city " .',
        "The plan is a gift to the city , the mayor said .",
        ["equivalent", "not_equivalent", "equivalent"],
        ["not_equivalent", "equivalent"],
    ),
    (
        "STS-B",
        "A woman peels an apple.",
        "An apple is being peeled by a woman.",
        [4.8, 3.25, 0.0],
        [4.0, 1.6],
    ),
    (
        "MNLI",
        "The lamp went out and she sat in the dark.",
        "It was dark.",
        ["entailment", "neutral", "contradiction"],
        ["entailment", "neutral"],
    ),
    (
        "QNLI",
        "When was the mill built?",
        "The mill was built in 1788 by two brothers.",
        ["entailment", "not_entailment", "entailment"],
        ["entailment", "not_entailment"],
    ),
    (
        "RTE",
        "Eva Lind, who sailed alone round Iceland, lives in Bergen.",
        "Eva Lind lives in Bergen.",
        ["entailment", "not_entailment", "entailment"],
        ["not_entailment", "entailment"],
    ),
    (
        "WNLI",
        "The cup did not fit in the box because it was too big.",
        "The cup was too big.",
        ["entailment", "not_entailment", "entailment"],
        ["entailment", "not_entailment"],
    ),
]


@pytest.mark.parametrize("task, text_a, text_b, train, dev", LAYOUTS)
def test_official_layouts(task, text_a, text_b, train, dev, recwarn):
    examples = read_glue(task, FIXTURES, "train")
    assert examples.text_a[0] == text_a
    assert (None if examples.text_b is None else examples.text_b[0]) == text_b
    assert examples.labels == train
    assert read_glue(task, FIXTURES / task, "dev").labels == dev
    assert read_glue(task, FIXTURES, "validation").labels == dev
    test = read_glue(task, FIXTURES, "test")
    assert (test.labels, test.ids, len(test)) == (None, ["0", "1"], 2)
    assert (test.text_b is None) == (text_b is None)
    assert not recwarn.list


def test_qqp_leaves_its_broken_rows_out_with_a_warning():
    with pytest.warns(UserWarning, match=r"1 rows without 6 fields were left out \(lines 4\)"):
        examples = read_glue("QQP", FIXTURES, "train")
    assert examples.labels == ["duplicate", "not_duplicate", "duplicate"]
    assert examples.ids == ["7", "8", "10"]
    assert examples.text_a[1] == 'What does "ad hoc" mean?'
    assert read_glue("qqp", FIXTURES, "dev").labels == ["duplicate", "not_duplicate"]
    assert read_glue("qqp", FIXTURES, "test").ids == ["0", "1"]


def test_mnli_has_two_dev_and_two_test_sets():
    mismatched = read_glue("mnli", FIXTURES, "dev_mismatched")
    assert mismatched.labels == ["contradiction", "neutral"]
    assert read_glue("mnli", FIXTURES, "validation_mismatched") == mismatched
    assert read_glue("mnli", FIXTURES, "dev").labels == ["entailment", "neutral"]
    assert read_glue("mnli", FIXTURES, "test").text_a[0] == "The inn is closed in winter."
    other = read_glue("mnli", FIXTURES, "test_mismatched")
    assert other.text_b == ["You gave something.", "The word is common."]


def test_the_diagnostic_set_has_a_test_split_only(tmp_path):
    examples = read_glue("ax", FIXTURES, "test")
    assert examples.text_b == ["The cat did not sit on the mat.", "Some dogs bark."]
    assert examples.labels is None
    with pytest.raises(ValueError, match=r"`split` must be one of test for the task ax"):
        read_glue("ax", FIXTURES, "train")
    (tmp_path / "diagnostic").mkdir()
    shutil.copy(FIXTURES / "AX" / "AX.tsv", tmp_path / "diagnostic" / "diagnostic.tsv")
    assert read_glue("AX", tmp_path, "test").text_a == examples.text_a


def test_quotation_marks_of_the_official_files_stay():
    assert read_glue("STS-B", FIXTURES).text_a[1] == '"We will not sell, says the owner.'
    assert read_glue("QNLI", FIXTURES).text_b[2] == 'A "weir is a low dam.'
    assert read_glue("CoLA", FIXTURES).text_a[2] == 'She said "not now" and left.'


def test_a_quoted_copy_with_class_numbers(tmp_path):
    (tmp_path / "dev.tsv").write_text(
        'sentence1\tsentence2\tlabel\tidx\n"He said ""go"" twice."\tHe spoke.\t0\t0\nA\tB\t1\t1\n'
    )
    examples = read_glue("RTE", tmp_path, "dev")
    assert examples.text_a == ['He said "go" twice.', "A"]
    assert examples.labels == ["entailment", "not_entailment"]
    assert examples.ids == ["0", "1"]


def test_one_file_gzip_and_json(tmp_path):
    path = tmp_path / "train.tsv.gz"
    path.write_bytes(gzip.compress((FIXTURES / "SST-2" / "train.tsv").read_bytes()))
    expected = read_glue("sst2", FIXTURES)
    assert read_glue("sst2", tmp_path).text_a == expected.text_a
    assert read_glue("sst2", path).labels == expected.labels
    row = '{"0": {"text_a": "a", "text_b": "b", "label": "neutral"}}'
    (tmp_path / "dev.json.gz").write_bytes(gzip.compress(row.encode()))
    assert read_glue("mnli", tmp_path, "dev").labels == ["neutral"]


@pytest.mark.parametrize(
    "task, label, message",
    [
        ("sst2", "2", r"dev\.tsv, line 2: the label of SST-2 must be one of `negative`, `posi"),
        ("sst2", "postive", r"Received: 'postive'\. Did you mean `positive`\?"),
        ("sst2", "", r"must have labels\. Received: an empty column `label`"),
    ],
)
def test_unknown_labels(tmp_path, task, label, message):
    (tmp_path / "dev.tsv").write_text(f"sentence\tlabel\nx\t{label}\n")
    with pytest.raises(ValueError, match=message):
        read_glue(task, tmp_path, "dev")


def test_scores_of_stsb_have_a_range(tmp_path):
    (tmp_path / "dev.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t5.5\n")
    with pytest.raises(ValueError, match=r"line 2: the score must be in 0\.0\.\.5\.0 .*: 5\.5"):
        read_glue("stsb", tmp_path, "dev")
    (tmp_path / "dev.tsv").write_text("sentence1\tsentence2\tscore\na\tb\tnan\n")
    with pytest.raises(ValueError, match=r"line 2, column `score`.*finite number.*'nan'"):
        read_glue("stsb", tmp_path, "dev")


def test_what_is_not_there(tmp_path):
    message = r"`path` must be a file, or a folder with dev_matched\.tsv, dev\.tsv .* folder MNLI"
    with pytest.raises(FileNotFoundError, match=message):
        read_glue("mnli", tmp_path, "dev")
    message = r"The task of GLUE must be one of cola.*Received: 'sst5'\. Did you mean `sst2`"
    with pytest.raises(ValueError, match=message):
        read_glue("sst5", tmp_path)
    with pytest.raises(ValueError, match=r"`split` must be one of train, dev, .*'trian'\. Did"):
        read_glue("sst2", FIXTURES, "trian")


def test_another_layout_names_the_missing_column(tmp_path):
    (tmp_path / "train.tsv").write_text("text\tlabel\nx\t1\n")
    with pytest.raises(ValueError, match="a column `sentence`. Received: columns `text`, `label`"):
        read_glue("sst2", tmp_path)


def test_the_table_of_tasks():
    assert list(GLUE_TASKS) == "cola sst2 mrpc stsb qqp mnli qnli rte wnli ax".split()
    assert glue_task("SST-2").metrics == ("accuracy",)
    assert [name for name, task in GLUE_TASKS.items() if task.is_regression] == ["stsb"]
    for task in GLUE_TASKS.values():
        assert len(task.labels) == len(task.submission_labels)
    assert glue_split(glue_task("mnli"), "test") == "test_matched"


@pytest.mark.parametrize(
    "task, folder, split, rows, share_of_first",
    [
        # The counts stand in the GLUE paper, table 1, or in the README of the shared data; the
        # shares were counted with awk.
        ("SST-2", "", "train", 67349, None),
        ("SST-2", "", "dev", 872, 428 / 872),
        ("RTE", "", "train", 2490, None),
        ("RTE", "", "dev", 277, 146 / 277),
        ("CoLA", "", "train", 8551, None),
        ("CoLA", "", "dev", 1043, 324 / 1043),
        ("STS-B", "", "train", 5749, None),
        ("STS-B", "", "dev", 1500, None),
        ("MNLI", "MNLI-subset", "train", 8999, None),
        ("QNLI", "QNLI-subset", "dev", 1000, None),
    ],
)
def test_real_files(shared_data, task, folder, split, rows, share_of_first):
    examples = read_glue(task, shared_data / "glue" / folder, split)
    assert len(examples) == rows
    if share_of_first is not None:
        first = glue_task(task).labels[0]
        share = sum(label == first for label in examples.labels) / rows
        assert share == pytest.approx(share_of_first)


def test_real_rte_loses_its_outer_quotes(shared_data):
    texts = read_glue("RTE", shared_data / "glue", "train").text_a
    assert not any(text.startswith('"') and '""' in text for text in texts)


def test_the_file_of_a_split_is_there(tmp_path):
    (tmp_path / "RTE").mkdir()
    (tmp_path / "RTE" / "dev.tsv").touch()
    check_glue("rte", tmp_path, "validation")
    with pytest.raises(FileNotFoundError, match="a folder with train.tsv .* split='train'"):
        check_glue("rte", tmp_path, "train")
    with pytest.raises(ValueError, match="`split` must be one of train, dev, test"):
        check_glue("rte", tmp_path, "tests")
