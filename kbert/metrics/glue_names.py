"""Names of the GLUE tasks and of the metrics that each reports.

Source: Wang et al., "GLUE: A Multi-Task Benchmark and Analysis Platform for Natural Language
Understanding" (2018), table 1: Matthews correlation for CoLA and the diagnostic set, accuracy and
F1 for MRPC and QQP, Pearson and Spearman correlation for STS-B, accuracy for the others.
"""

from kbert.hints import nearest

# The first metric of a task is the one that its runs are compared by.
GLUE_METRICS: dict[str, tuple[str, ...]] = {
    "cola": ("matthews",),
    "sst2": ("accuracy",),
    "mrpc": ("f1", "accuracy"),
    "stsb": ("pearson", "spearman"),
    "qqp": ("f1", "accuracy"),
    "mnli": ("accuracy",),
    "qnli": ("accuracy",),
    "rte": ("accuracy",),
    "wnli": ("accuracy",),
    "ax": ("matthews",),
}
_ALIASES = {
    "diagnostic": "ax",
    **dict.fromkeys(("mnlim", "mnlimm", "mnlimatched", "mnlimismatched"), "mnli"),
}


def glue_task_name(task: str) -> str:
    """Returns the short name of a GLUE task: "stsb" for "STS-B", "sts_b" and "stsb"."""
    key = task.lower().replace("-", "").replace("_", "").removeprefix("glue/")
    key = _ALIASES.get(key, key)
    if key not in GLUE_METRICS:
        raise ValueError(
            f"The task of GLUE must be one of {', '.join(GLUE_METRICS)}. Received: {task!r}."
            f"{nearest(key, GLUE_METRICS)}"
        )
    return key
