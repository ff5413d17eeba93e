"""Checks of an export's files beside its SavedModel, and of the answers to their requests.

The requests of warm-up and golden answers are run in Python, and without it by TensorFlow's C++
session loader.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kbert.export_check.bad_requests import bad_request_problems
from kbert.export_check.report import Check
from kbert.serving.format.batching_file import Batching, read_batching
from kbert.serving.format.recorded_requests import (
    GOLDEN_FILE,
    MAX_RECORDS,
    TOLERANCES,
    GoldenAnswer,
    PredictRequest,
    differences,
    read_golden,
    read_warmup,
)
from kbert.serving.format.signatures import Signature, weights_of
from kbert.serving.format.version_folders import (
    METADATA_FILE,
    SAVED_MODEL_FILE,
    is_version,
    read_metadata,
)
from kbert.serving.loading.exported import LoadedModel
from kbert.serving.loading.session_loader import Session

Runner = Callable[[str, Mapping[str, np.ndarray]], dict[str, np.ndarray]]
_NO_BUNDLE = "the export has no bundle of kbert"
_MOST_PROBLEMS = 10
# Runner -> its name in messages.
_PLACES = {"python": "Python", "session": "the C++ loader"}


@dataclass(frozen=True)
class Bundle:
    """Checks of the files, valid records of the warm-up, and requests with their answers."""

    checks: list[Check]
    warmup: list[PredictRequest]
    golden: list[GoldenAnswer] | None


def bundle_checks(
    export_dir: Path, signatures: Mapping[str, Signature], tensorflow_version: str
) -> Bundle:
    """Reads and checks the bundle of a version folder, against the SavedModel's signatures."""
    is_kberts = (export_dir / METADATA_FILE).is_file()
    most = 0  # rows of the graph's own batches
    with suppress(FileNotFoundError, ValueError, AttributeError, KeyError, TypeError):
        batching = read_metadata(export_dir)["batching"]
        most = int(batching["max_batch_size"] if "num_batch_threads" in batching else 0)
    metadata = _metadata_check(export_dir, signatures, tensorflow_version)
    joined, _ = _file_check(
        "batching",
        lambda: read_batching(export_dir),
        "",
        lambda found: _batching_problems(found, is_kberts),
    )
    if joined.skipped and is_kberts:
        note = f"the graph joins requests to batches of {most} rows"
        joined = Check("batching", note=note if most else "requests are not joined")
    warmup, requests = _file_check(
        "warmup",
        lambda: read_warmup(export_dir),
        "tf_serving_warmup_requests is missing." if is_kberts else "",
        lambda found: _warmup_problems(found, signatures, {1, max(1, most)}),
    )
    if requests is not None:
        warmup = replace(warmup, note=f"{len(requests)} records")
    answers, golden = _file_check(
        "golden_file",
        lambda: read_golden(export_dir, signatures),
        "golden_answers.json is missing." if is_kberts else "",
        lambda found: [
            f"The signature {name!r} has no golden answer."
            for name in sorted(set(signatures) - {one.signature for one in found})
        ],
    )
    valid = [one for one in requests or [] if not list(_request_problems(one, signatures))]
    return Bundle([metadata, joined, warmup, answers], valid, golden)


def _file_check(
    name: str, read: Callable[[], Any], missing: str, problems_of: Callable[[Any], Iterable[str]]
) -> tuple[Check, Any]:
    """Returns the check of a file, and what it holds; None if it is damaged or missing.

    Its absence is the problem `missing`, or none if that is "".
    """
    try:
        found = read()
    except ValueError as error:
        return Check(name, (str(error),)), None
    if found is None:
        return Check(name, (missing,) if missing else (), "" if missing else _NO_BUNDLE), None
    return Check(name, tuple(problems_of(found))), found


def _metadata_check(
    export_dir: Path, signatures: Mapping[str, Signature], tensorflow_version: str
) -> Check:
    try:
        found = _metadata_problems(export_dir, signatures, tensorflow_version)
        return Check("metadata", tuple(found))
    except FileNotFoundError:
        if (export_dir / GOLDEN_FILE).is_file():
            return Check("metadata", (f"{METADATA_FILE} is missing beside {GOLDEN_FILE.name}.",))
        return Check("metadata", skipped=_NO_BUNDLE)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Check("metadata", (f"{METADATA_FILE} is damaged: {error}.",))


def _metadata_problems(
    export_dir: Path, signatures: Mapping[str, Signature], tensorflow_version: str
) -> Iterator[str]:
    metadata = read_metadata(export_dir)
    told = {
        name: {
            kind: {t["name"]: {"dtype": t["dtype"], "shape": t["shape"]} for t in one[kind]}
            for kind in ("inputs", "outputs")
        }
        for name, one in metadata["signatures"].items()
    }
    real = {
        name: {
            kind: {key: tensor.as_json() for key, tensor in getattr(one, kind).items()}
            for kind in ("inputs", "outputs")
        }
        for name, one in signatures.items()
    }
    for name in sorted({*told, *real}):
        if told.get(name) != real.get(name):
            yield f"{METADATA_FILE} and the graph differ in the signature {name!r}."
    facts = {
        "version": int(export_dir.name) if is_version(export_dir.name) else None,
        "tensorflow_version": tensorflow_version,
        "graph_bytes": (export_dir / SAVED_MODEL_FILE).stat().st_size,
        "weights": asdict(weights_of(export_dir)),
    }
    for key, value in facts.items():
        if value is not None and key in metadata and metadata[key] != value:
            yield f"{METADATA_FILE} says {key}={metadata[key]!r}; it is {value!r}."


def _batching_problems(batching: Batching, is_kberts: bool) -> Iterator[str]:
    before = "batching_params.pbtxt lets a server join requests before the graph can check them: "
    if batching.pad_variable_length_inputs:
        yield (
            f"{before}with pad_variable_length_inputs, one of another rank beside good ones ends "
            "the process. Export the model again, or remove the file."
        )
    elif is_kberts:
        yield (
            f"{before}one of another rank fails all that share its batch. Export the model again, "
            "or remove the file."
        )


def _warmup_problems(
    requests: list[PredictRequest], signatures: Mapping[str, Signature], sizes: set[int]
) -> Iterator[str]:
    if len(requests) > MAX_RECORDS:
        yield f"There are {len(requests)} records; a server loads at most {MAX_RECORDS}."
    for number, request in enumerate(requests, 1):
        for problem in _request_problems(request, signatures):
            yield f"Record {number}: {problem}"
    for name in signatures:
        missing = sizes - {one.rows for one in requests if one.signature == name}
        if missing:
            yield f"The signature {name!r} has no record of {sorted(missing)} row(s)."


def _request_problems(
    request: PredictRequest, signatures: Mapping[str, Signature]
) -> Iterator[str]:
    signature = signatures.get(request.signature)
    if signature is None:
        yield f"there is no signature {request.signature!r}."
        return
    if set(request.inputs) != set(signature.inputs):
        yield f"the inputs are {sorted(request.inputs)} instead of {sorted(signature.inputs)}."
        return
    for name, tensor in signature.inputs.items():
        batch = request.inputs[name]
        kind = "string" if batch.dtype == object else batch.dtype.name
        if kind != tensor.dtype.name:
            yield f"{name!r} is of {kind} instead of {tensor.dtype.name}."
        rank = batch.ndim if tensor.shape is None else len(tensor.shape)
        if batch.ndim != rank or batch.ndim == 0 or len(batch) != request.rows:
            yield f"{name!r} has the shape {batch.shape}, of {request.rows} row(s)."


class Replay:
    """Runs all requests of a bundle, in Python and without it, where the export can be loaded."""

    def __init__(self, export_dir: Path, folder: str | os.PathLike[str] | None = None) -> None:
        self._path = export_dir
        self._folder = folder
        self._runners: dict[str, Runner] = {}
        self._session: Session | None = None
        self._problems: dict[str, list[str]] = {name: [] for name in (*_PLACES, "same", "golden")}

    def checks(self, bundle: Bundle) -> Iterator[Check]:
        """Loads the export, runs the requests of its bundle, and compares the answers.

        Yields "python_run" and "session_run": all requests ran there; "same_answers": both gave the
        same answers; "golden_answers": both gave the model's answers before the export;
        "bad_requests": without Python the graph refuses what does not fit.
        """
        golden = bundle.golden or []
        with ExitStack() as stack:
            skipped = self._load(stack)
            tolerance = golden[0].tolerance if golden else TOLERANCES["float32"]
            for number, request in enumerate(bundle.warmup, 1):
                self._run(f"warm-up record {number}", request, tolerance)
            for one in golden:
                what = f"the golden request to {one.signature!r}"
                found = self._run(what, one, one.tolerance)
                for place, answer in found.items():
                    for told in differences(answer, one.outputs, one.tolerance):
                        self._tell("golden", f"In {_PLACES[place]}, {what}: {told}.")
            is_kberts = bundle.golden is not None
            bad = list(bad_request_problems(self._session)) if is_kberts and self._session else []
        count = len(bundle.warmup) + len(golden)
        for place in _PLACES:
            note = f"{count} requests"
            yield Check(f"{place}_run", tuple(self._problems[place]), skipped.get(place, ""), note)
        places = len(self._runners)
        both = "" if places == len(_PLACES) else "the export ran in one place, or in none"
        yield Check("same_answers", tuple(self._problems["same"]), both)
        none = "" if golden and places else "there are no golden answers, or no place to run them"
        yield Check("golden_answers", tuple(self._problems["golden"]), none)
        asked = "" if is_kberts and self._session else f"{_NO_BUNDLE}, or no place to run it"
        yield Check("bad_requests", tuple(bad), asked)

    def _load(self, stack: ExitStack) -> dict[str, str]:
        """Fills the runners; returns name -> why a runner cannot be used here."""
        skipped: dict[str, str] = {}
        try:
            self._runners["python"] = LoadedModel(self._path, rebuilt=True).run
        except Exception as error:  # TensorFlow raises any class for an invalid file
            self._tell("python", f"Python cannot load the export: {_words(error)}")
        try:
            self._session = stack.enter_context(Session(self._path, folder=self._folder))
            self._runners["session"] = self._session.run
        except FileNotFoundError as error:
            skipped["session"] = str(error)
        except RuntimeError as error:
            self._tell("session", f"The C++ loader cannot load the export: {_words(error)}")
        return skipped

    def _run(
        self, what: str, request: PredictRequest | GoldenAnswer, tolerance: float
    ) -> dict[str, dict[str, np.ndarray]]:
        """Returns name of each runner -> its answer to one request."""
        rows = len(next(iter(request.inputs.values()), ()))
        answers = {}
        for place, run in self._runners.items():
            try:
                answers[place] = run(request.signature, request.inputs)
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
