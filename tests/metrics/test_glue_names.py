"""Names of the GLUE tasks and their metrics, as in table 1 of the GLUE paper."""

import pytest

from kbert.metrics.glue_names import GLUE_METRICS, glue_task_name


@pytest.mark.parametrize(
    "given, expected",
    [
        ("sst2", "sst2"),
        ("SST-2", "sst2"),
        ("STS-B", "stsb"),
        ("sts_b", "stsb"),
        ("CoLA", "cola"),
        ("glue/mrpc", "mrpc"),
        ("MNLI-mm", "mnli"),
        ("MNLI-m", "mnli"),
        ("mnli_matched", "mnli"),
        ("MNLI-mismatched", "mnli"),
        ("AX", "ax"),
        ("diagnostic", "ax"),
    ],
)
def test_spellings(given, expected):
    assert glue_task_name(given) == expected


def test_an_unknown_task_lists_the_tasks():
    message = r"The task of GLUE must be one of cola, sst2, .*, ax\. Received: 'imdb'\.$"
    with pytest.raises(ValueError, match=message):
        glue_task_name("imdb")


def test_metrics_of_the_paper():
    assert GLUE_METRICS["cola"] == ("matthews",)
    assert set(GLUE_METRICS["mrpc"]) == set(GLUE_METRICS["qqp"]) == {"accuracy", "f1"}
    assert GLUE_METRICS["stsb"] == ("pearson", "spearman")
    accuracy_alone = {name for name, metrics in GLUE_METRICS.items() if metrics == ("accuracy",)}
    assert accuracy_alone == {"sst2", "mnli", "qnli", "rte", "wnli"}
