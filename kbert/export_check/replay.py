"""The requests of a bundle, run in Python, and without it by TensorFlow's C++ session loader."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from kbert.export_check.bundle_checks import Bundle
from kbert.export_check.report import Check
from kbert.serving.bundle.golden_answers import TOLERANCES, differences
from kbert.serving.format.signatures import Signature
from kbert.serving.loading.loaded_model import LoadedModel
from kbert.serving.loading.session_loader import Session

Runner = Callable[[str, Mapping[str, np.ndarray]], dict[str, np.ndarray]]

_MOST_PROBLEMS = 10
# Runner -> its name in messages.
_PLACES = {"python": "Python", "session": "the C++ loader"}


class Replay:
    """Runs all requests of a bundle, in Python and without it, wherever the export can be loaded.

    Args:
        export_dir: The version folder.
        signatures: Name -> signature.
        folder: Folder of the program that runs it without Python, see
            `kbert.serving.loading.session_loader.build_session_loader`.
    """

    def __init__(
        self,
        export_dir: Path,
        signatures: Mapping[str, Signature],
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self._path = export_dir
        self._signatures = signatures
        self._folder = folder
        self._problems: dict[str, list[str]] = {name: [] for name in (*_PLACES, "same", "golden")}

    def checks(self, bundle: Bundle) -> Iterator[Check]:
        """Loads the export, runs the requests, and compares the answers.

        Args:
            bundle: The requests.

        Yields:
            "python_run" and "session_run": all requests ran there; "same_answers": both gave the
            same answers; "golden_answers": both gave the model's answers before the export.
        """
        golden = bundle.golden or []
        with ExitStack() as stack:
            runners, skipped = self._load(stack)
            tolerance = golden[0].tolerance if golden else TOLERANCES["float32"]
            for number, request in enumerate(bundle.warmup, 1):
                what = f"warm-up record {number}"
                self._run(runners, what, request.signature, request.inputs, tolerance)
            for one in golden:
                what = f"the golden request to {one.signature!r}"
                found = self._run(runners, what, one.signature, one.inputs, one.tolerance)
                for place, answer in found.items():
                    for told in differences(answer, one.outputs, one.tolerance):
                        self._tell("golden", f"In {_PLACES[place]}, {what}: {told}.")
        count = len(bundle.warmup) + len(golden)
        for place in _PLACES:
            note = f"{count} requests"
            yield Check(f"{place}_run", tuple(self._problems[place]), skipped.get(place, ""), note)
        both = "" if len(runners) == len(_PLACES) else "the export ran in one place, or in none"
        yield Check("same_answers", tuple(self._problems["same"]), both)
        none = "" if golden and runners else "there are no golden answers, or no place to run them"
        yield Check("golden_answers", tuple(self._problems["golden"]), none)

    def _load(self, stack: ExitStack) -> tuple[dict[str, Runner], dict[str, str]]:
        """Returns name -> runner of requests, and name -> why a runner cannot be used here."""
        runners: dict[str, Runner] = {}
        skipped: dict[str, str] = {}
        try:
            runners["python"] = LoadedModel(self._path).run
        except Exception as error:  # TensorFlow raises any class for an invalid file
            self._tell("python", f"Python cannot load the export: {_words(error)}")
        try:
            runners["session"] = stack.enter_context(Session(self._path, folder=self._folder)).run
        except FileNotFoundError as error:
            skipped["session"] = str(error)
        except RuntimeError as error:
            self._tell("session", f"The C++ loader cannot load the export: {_words(error)}")
        return runners, skipped

    def _run(
        self,
        runners: dict[str, Runner],
        what: str,
        signature: str,
        inputs: Mapping[str, np.ndarray],
        tolerance: float,
    ) -> dict[str, dict[str, np.ndarray]]:
        """Returns name of each runner -> its answer to one request."""
        rows = len(next(iter(inputs.values()), ()))
        answers = {}
        for place, run in runners.items():
            try:
                answers[place] = run(signature, inputs)
            except Exception as error:  # as above
                self._tell(place, f"{what} fails: {_words(error)}")
                continue
            for name, batch in answers[place].items():
                if batch.ndim == 0 or len(batch) != rows:
                    told = f"{what}: {name!r} has the shape {batch.shape} for {rows} row(s)."
                    self._tell(place, told)
        if len(answers) == len(_PLACES):
            for told in differences(answers["session"], answers["python"], tolerance):
                self._tell("same", f"{what}: without Python {told}.")
        return answers

    def _tell(self, kind: str, problem: str) -> None:
        if len(self._problems[kind]) < _MOST_PROBLEMS:
            self._problems[kind].append(problem)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
