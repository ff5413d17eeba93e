import io

from rich.console import Console

from kbert.cli.actions.evaluation import show_labels


def test_the_table_and_nothing_without_labels():
    row = {"precision": 0.5, "recall": 0.25, "f1": 1 / 3, "support": 4}
    metrics = {"per_class": {"up": row}, "macro_f1": 0.125, "accuracy": 0.75}
    file = io.StringIO()
    show_labels(metrics, Console(file=file, width=80))
    text = file.getvalue()
    assert "up" in text and "0.500" in text and "0.250" in text and "0.333" in text
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines()]
    assert ["all: accuracy", "", "", "0.750", "4"] in rows
    assert ["mean of labels", "", "", "0.125", ""] in rows
    file = io.StringIO()
    show_labels({"mse": 1.0}, Console(file=file))
    assert file.getvalue() == ""


def test_labels_that_look_like_markup_stand_as_they_are():
    row = {"precision": 0.5, "recall": 0.25, "f1": 1 / 3, "support": 4}
    metrics = {"per_class": {"[/b]": row, "[urgent]": row}, "macro_f1": 0.125, "accuracy": 0.75}
    file = io.StringIO()
    show_labels(metrics, Console(file=file, width=80))
    assert "[/b]" in file.getvalue() and "[urgent]" in file.getvalue()


def test_the_table_of_several_labels():
    row = {"threshold": 0.375, "precision": 0.5, "recall": 0.25, "f1": 1 / 3, "support": 4}
    micro = {"micro_precision": 0.6, "micro_recall": 0.7, "micro_f1": 0.8}
    metrics = {"per_class": {"up": row}, "macro_f1": 0.125, "exact_match": 0.0625, **micro}
    file = io.StringIO()
    show_labels(metrics, Console(file=file, width=80))
    text = file.getvalue()
    for part in ("threshold", "0.375", "0.333", "0.600", "0.700", "0.800", "0.125", "0.062"):
        assert part in text, part
