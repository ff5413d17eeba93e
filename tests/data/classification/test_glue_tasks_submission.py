"""Submission files. The expected lines follow the format of the GLUE server, by hand."""

import pytest

from kbert.data.classification.glue_tasks import GLUE_TASKS, write_glue_submission

pytestmark = pytest.mark.filterwarnings("ignore:.*the official test set has")


@pytest.mark.parametrize(
    "task, predictions, name, answers",
    [
        ("cola", ["acceptable", "unacceptable"], "CoLA.tsv", ["1", "0"]),
        ("sst2", [1, 0], "SST-2.tsv", ["1", "0"]),
        ("mrpc", ["equivalent", "not_equivalent"], "MRPC.tsv", ["1", "0"]),
        ("qqp", ["not_duplicate", "duplicate"], "QQP.tsv", ["0", "1"]),
        ("stsb", [2.71828, 5.3, -0.2], "STS-B.tsv", ["2.718", "5.000", "0.000"]),
        ("mnli", ["neutral", "contradiction"], "MNLI-m.tsv", ["neutral", "contradiction"]),
        ("qnli", [0, 1], "QNLI.tsv", ["entailment", "not_entailment"]),
        ("rte", ["1", "entailment"], "RTE.tsv", ["not_entailment", "entailment"]),
        ("wnli", ["not_entailment", "entailment"], "WNLI.tsv", ["0", "1"]),
        ("ax", [0, 1, 2], "AX.tsv", ["entailment", "neutral", "contradiction"]),
    ],
)
def test_files(tmp_path, task, predictions, name, answers):
    path = write_glue_submission(task, predictions, tmp_path / "out")
    assert path == tmp_path / "out" / name
    lines = [f"{i}\t{answer}" for i, answer in enumerate(answers)]
    assert path.read_bytes().decode() == "\n".join(["index\tprediction", *lines, ""])


def test_mnli_mismatched_and_ids(tmp_path):
    path = write_glue_submission("MNLI", [2], tmp_path, ids=["17"], split="test_mismatched")
    assert path.name == "MNLI-mm.tsv"
    assert path.read_text() == "index\tprediction\n17\tcontradiction\n"
    assert write_glue_submission("MNLI", [2], tmp_path, split="test_matched").name == "MNLI-m.tsv"


def test_the_official_number_of_rows(tmp_path, recwarn):
    write_glue_submission("wnli", [0] * 146, tmp_path)
    assert not recwarn.list
    message = r"WNLI\.tsv: the official test set has 146 rows\. Received: 145"
    with pytest.warns(UserWarning, match=message):
        write_glue_submission("wnli", [0] * 145, tmp_path)


def test_official_sizes():
    # gluebenchmark.com/tasks
    sizes = {name: rows for task in GLUE_TASKS.values() for name, rows in task.test_rows.items()}
    assert sizes == {
        "CoLA.tsv": 1063,
        "SST-2.tsv": 1821,
        "MRPC.tsv": 1725,
        "STS-B.tsv": 1379,
        "QQP.tsv": 390965,
        "MNLI-m.tsv": 9796,
        "MNLI-mm.tsv": 9847,
        "QNLI.tsv": 5463,
        "RTE.tsv": 3000,
        "WNLI.tsv": 146,
        "AX.tsv": 1104,
    }


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(task="sst2", predictions=[]), r"`predictions` must hold one item a test row"),
        (
            dict(task="rte", predictions=["entailment", "entailmnt"]),
            r"`predictions` must be classes of RTE.*predictions\[1\]='entailmnt'\. Did you mean",
        ),
        (dict(task="sst2", predictions=[2]), r"must be classes of SST-2.*predictions\[0\]=2"),
        (dict(task="stsb", predictions=[float("nan")]), r"finite scores.*predictions\[0\]=nan"),
        (dict(task="sst2", predictions=[0, 1], ids=[3, 3]), r"`ids` must be 2 different ids"),
        (dict(task="sst2", predictions=[0, 1], ids=[3]), r"`ids` must be 2 different ids.*1 ids"),
        (
            dict(task="sst2", predictions=[0], split="test_matched"),
            r"`split` must be one of test for the task sst2",
        ),
    ],
)
def test_errors(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        write_glue_submission(directory=tmp_path, **arguments)
    assert not list(tmp_path.iterdir())
