"""Checks of an export's files beside its SavedModel: metadata, batching, warm-up, answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbert.export_check.report import Check
from kbert.serving.bundle.golden_answers import GoldenAnswer, read_golden
from kbert.serving.bundle.warmup import MAX_RECORDS, read_warmup
from kbert.serving.format.batching_file import LENGTHS, Batching, read_batching
from kbert.serving.format.metadata import METADATA_FILE, read_metadata
from kbert.serving.format.prediction_log import PredictRequest
from kbert.serving.format.signatures import Signature
from kbert.serving.format.version_folders import SAVED_MODEL_FILE, is_version
from kbert.serving.format.weights_on_disk import weights_of

_NO_BUNDLE = "the export has no bundle of kbert"


@dataclass
class Bundle:
    """The contents of a bundle, with its requests to run.

    Attributes:
        checks: The checks of the files.
        warmup: The valid records of the warm-up.
        golden: The requests with their answers; None if there is no file.
    """

    checks: list[Check] = field(default_factory=list)
    warmup: list[PredictRequest] = field(default_factory=list)
    golden: list[GoldenAnswer] | None = None


def bundle_checks(
    export_dir: Path, signatures: Mapping[str, Signature], tensorflow_version: str
) -> Bundle:
    """Reads and checks a bundle.

    Args:
        export_dir: The version folder.
        signatures: Name -> signature, of the SavedModel.
        tensorflow_version: The TensorFlow that wrote the SavedModel.
    """
    bundle = Bundle()
    is_kberts = (export_dir / METADATA_FILE).is_file()
    bundle.checks.append(_metadata_check(export_dir, signatures, tensorflow_version))
    batching = _read_batching(export_dir, signatures, is_kberts, bundle)
    _read_warmup(export_dir, signatures, batching, is_kberts, bundle)
    _read_golden(export_dir, signatures, is_kberts, bundle)
    return bundle


def _metadata_check(
    export_dir: Path, signatures: Mapping[str, Signature], tensorflow_version: str
) -> Check:
    try:
        metadata = read_metadata(export_dir)
        problems = list(_metadata_problems(metadata, export_dir, signatures, tensorflow_version))
        return Check("metadata", tuple(problems))
    except FileNotFoundError:
        return Check("metadata", skipped=_NO_BUNDLE)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Check("metadata", (f"{METADATA_FILE} is damaged: {error}.",))


def _metadata_problems(
    metadata: dict[str, Any],
    export_dir: Path,
    signatures: Mapping[str, Signature],
    tensorflow_version: str,
) -> Iterator[str]:
    told = {
        name: {
            kind: {t["name"]: {"dtype": t["dtype"], "shape": t["shape"]} for t in one[kind]}
            for kind in ("inputs", "outputs")
        }
        for name, one in metadata["signatures"].items()
    }
    real = {
        name: {
            "inputs": {key: tensor.as_json() for key, tensor in one.inputs.items()},
            "outputs": {key: tensor.as_json() for key, tensor in one.outputs.items()},
        }
        for name, one in signatures.items()
    }
    for name in sorted({*told, *real}):
        if told.get(name) != real.get(name):
            yield f"{METADATA_FILE} and the graph differ in the signature {name!r}."
    weights = weights_of(export_dir)
    facts = {
        "version": int(export_dir.name) if is_version(export_dir.name) else None,
        "tensorflow_version": tensorflow_version,
        "graph_bytes": (export_dir / SAVED_MODEL_FILE).stat().st_size,
        "weights": {
            "arrays": weights.arrays,
            "parameters": weights.parameters,
            "bytes": weights.bytes,
            "dtypes": weights.dtypes,
        },
    }
    for key, value in facts.items():
        if value is not None and key in metadata and metadata[key] != value:
            yield f"{METADATA_FILE} says {key}={metadata[key]!r}; it is {value!r}."


def _read_batching(
    export_dir: Path, signatures: Mapping[str, Signature], is_kberts: bool, bundle: Bundle
) -> Batching | None:
    try:
        batching = read_batching(export_dir)
    except ValueError as error:
        bundle.checks.append(Check("batching", (str(error),)))
        return None
    if batching is None:
        told = _told_batching(export_dir)
        problems = () if told is None else ("batching_params.pbtxt is missing.",)
        note = "requests are not joined" if is_kberts else ""
        skipped = "" if is_kberts or problems else _NO_BUNDLE
        bundle.checks.append(Check("batching", problems, skipped, note))
        return None
    bundle.checks.append(Check("batching", tuple(_padding_problems(batching, signatures))))
    return batching


def _told_batching(export_dir: Path) -> Any:
    try:
        return read_metadata(export_dir).get("batching")
    except (FileNotFoundError, ValueError):
        return None


def _padding_problems(batching: Batching, signatures: Mapping[str, Signature]) -> Iterator[str]:
    for name, signature in signatures.items():
        for key, tensor in signature.inputs.items():
            if tensor.shape is None or None not in tensor.shape[1:]:
                continue
            if not batching.pad_variable_length_inputs:
                yield (
                    f"The input {key!r} of {name!r} varies in length; without "
                    "pad_variable_length_inputs requests of different lengths fail."
                )
            elif LENGTHS not in signature.inputs:
                yield (
                    f"The input {key!r} of {name!r} varies in length, and the signature has no "
                    f"{LENGTHS!r}: what a server pads would be taken for real."
                )


def _read_warmup(
    export_dir: Path,
    signatures: Mapping[str, Signature],
    batching: Batching | None,
    is_kberts: bool,
    bundle: Bundle,
) -> None:
    try:
        requests = read_warmup(export_dir)
    except ValueError as error:
        bundle.checks.append(Check("warmup", (str(error),)))
        return
    if requests is None:
        missing = ("tf_serving_warmup_requests is missing.",) if is_kberts else ()
        bundle.checks.append(Check("warmup", missing, "" if missing else _NO_BUNDLE))
        return
    problems = list(_warmup_problems(requests, signatures, batching))
    bundle.checks.append(Check("warmup", tuple(problems), note=f"{len(requests)} records"))
    bundle.warmup = [one for one in requests if not list(_request_problems(one, signatures))]


def _warmup_problems(
    requests: list[PredictRequest],
    signatures: Mapping[str, Signature],
    batching: Batching | None,
) -> Iterator[str]:
    if len(requests) > MAX_RECORDS:
        yield f"There are {len(requests)} records; a server loads at most {MAX_RECORDS}."
    for number, request in enumerate(requests, 1):
        for problem in _request_problems(request, signatures):
            yield f"Record {number}: {problem}"
    sizes = (1,) if batching is None else batching.allowed_batch_sizes
    for name in signatures:
        missing = set(sizes) - {one.rows for one in requests if one.signature == name}
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


def _read_golden(
    export_dir: Path, signatures: Mapping[str, Signature], is_kberts: bool, bundle: Bundle
) -> None:
    try:
        bundle.golden = read_golden(export_dir, signatures)
    except ValueError as error:
        bundle.checks.append(Check("golden_file", (str(error),)))
        return
    if bundle.golden is None:
        missing = ("golden_answers.json is missing.",) if is_kberts else ()
        bundle.checks.append(Check("golden_file", missing, "" if missing else _NO_BUNDLE))
        return
    without = sorted(set(signatures) - {one.signature for one in bundle.golden})
    problems = [f"The signature {name!r} has no golden answer." for name in without]
    bundle.checks.append(Check("golden_file", tuple(problems)))
