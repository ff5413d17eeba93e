"""Runs, saved models and exports behind one face: rows of texts in, answers out."""

import os
from typing import Any

from kbert.cli.text_lines import Row


class Answering:
    """A model that answers rows of texts.

    Args:
        inputs: What a row holds: ("text",), ("text_a", "text_b"), or ("context", "choices").
        answer: Turns a column for each input into one dict a row.
    """

    def __init__(self, inputs: tuple[str, ...], answer: Any) -> None:
        self.inputs = inputs
        self._answer = answer

    def split(self, line: str, number: int) -> Row:
        """Splits a line of input at its tabs.

        Args:
            line: The line.
            number: Its number, for the message.

        Raises:
            ValueError: It has not as many parts as the model reads.
        """
        # A tab inside a single text is white space to a tokenizer, and stays.
        row = (line,) if len(self.inputs) == 1 else tuple(line.split("\t"))
        self.check([row], f"stdin, line {number}")
        return row

    def check(self, rows: list[Row], source: str) -> None:
        """Checks that rows hold what the model reads.

        Args:
            rows: The rows.
            source: Where they come from, for the message.

        Raises:
            ValueError: A row has too few or too many texts.
        """
        choices = self.inputs == ("context", "choices")
        for row in rows:
            if len(row) >= 3 if choices else len(row) == len(self.inputs):
                continue
            wanted = "a context and two choices or more" if choices else ", ".join(self.inputs)
            raise ValueError(
                f"{source}: the model reads {wanted}, with a tab between. Received: {len(row)} "
                f"text(s): {row!r}"
            )

    def answers(self, rows: list[Row]) -> list[dict[str, Any]]:
        """Answers rows, in their order.

        Args:
            rows: Rows that `check` accepts.

        Raises:
            ValueError: Rows have different numbers of choices.
        """
        if self.inputs == ("context", "choices"):
            return self._answer([row[0] for row in rows], [list(row[1:]) for row in rows])
        return self._answer(*(list(column) for column in zip(*rows)))


def open_model(path: str | os.PathLike[str]) -> Answering:
    """Opens a run, a folder of a saved model, or an export.

    Args:
        path: The folder.

    Raises:
        FileNotFoundError: There is none, or the run is not finished.
        ValueError: It is something else.
    """
    from kbert.training.run_directory import is_run

    if not is_run(path) and is_export(path):
        from kbert.serving.exported import load_export

        exported = load_export(path)
        return Answering(tuple(exported.input_names()), exported.answers)
    from kbert.training.averaging import load_model

    model = load_model(path)
    if hasattr(model, "choice_dataset"):
        return Answering(("context", "choices"), lambda *columns: model.answers(columns))
    inputs = ("text_a", "text_b") if model.pair else ("text",)
    return Answering(inputs, lambda *columns: _model_answers(model, columns))


def is_export(path: str | os.PathLike[str]) -> bool:
    """Tells whether a folder is an export: BASE/<model>, or BASE/<model>/<version>.

    Args:
        path: The folder.
    """
    from kbert.serving.version_folders import find_export

    try:
        find_export(path)
    except FileNotFoundError:
        return False
    return True


def _model_answers(model: Any, columns: tuple[list[str], ...]) -> list[dict[str, Any]]:
    """The answers of a model under the names that its export gives them."""
    packed = model.pack(*columns)
    scores = model.predict_packed(packed).tolist()
    rows = []
    for predicted, truncated in zip(scores, packed.truncated.tolist()):
        if not isinstance(predicted, list):
            rows.append({"score": predicted, "truncated": truncated})
            continue
        best = max(range(len(predicted)), key=predicted.__getitem__)
        rows.append(
            {
                "label": model.labels[best],
                "score": predicted[best],
                "scores": dict(zip(model.labels, predicted)),
                "truncated": truncated,
            }
        )
    return rows
