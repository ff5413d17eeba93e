"""The ops that each version of TF Serving has linked.

TF Serving links all ops of the TensorFlow of its own version and tensorflow-text's `ops_lib`:
2.12.1 of it in Serving 2.16 to 2.19, 2.20 in Serving 2.20. Sources: `tf.raw_ops` of the wheels of
tensorflow-cpu 2.16.2, 2.17.1, 2.18.1, 2.19.1 and 2.20.0, compared; the libraries of tensorflow-text
2.12.1 and 2.20.1, compared; serving PR 4057.
"""

import re
from collections.abc import Iterable

# Versions that are known here, oldest first.
SERVERS = ("2.16", "2.17", "2.18", "2.19", "2.20")
_CSR = "XlaSparseDenseMatmulCustomCombinerOnTc"
_STATIC = "XlaSparseDenseMatmul"
# Version -> the ops that no older one has.
NEW_OPS: dict[str, frozenset[str]] = {
    "2.17": frozenset(
        {
            "ConvertToListOfSparseCoreCooTensors",
            "ConvertToSparseCoreCsrWrappedCooTensor",
            "GetStatsFromListOfSparseCoreCooTensors",
            "GlobalShuffleDataset",
            "IndexFlatMapDataset",
            "IteratorGetModelProto",
            "SortListOfSparseCoreCooTensors",
            "WeightedFlatMapDataset",
            f"{_STATIC}GradWithAdagradAndStaticBufferSize",
            f"{_STATIC}GradWithAdagradMomentumAndStaticBufferSize",
            f"{_STATIC}GradWithAdamAndStaticBufferSize",
            f"{_STATIC}GradWithFtrlAndStaticBufferSize",
            f"{_STATIC}GradWithSgdAndStaticBufferSize",
            f"{_STATIC}WithStaticBufferSize",
        }
    ),
    "2.18": frozenset({"CheckPinned", f"{_STATIC}GradWithCsrInput"}),
    "2.19": frozenset(),
    "2.20": frozenset(
        {
            "DecodeWebP",
            "TPUDummyInput",
            f"{_CSR}GradWithAdagradAndCsrInput",
            f"{_CSR}GradWithAdagradMomentumAndCsrInput",
            f"{_CSR}GradWithAdamAndCsrInput",
            f"{_CSR}GradWithCsrInput",
            f"{_CSR}GradWithFtrlAndCsrInput",
            f"{_CSR}GradWithSgdAndCsrInput",
            f"{_CSR}WithCsrInput",
            "TFText>RoundRobinGenerateMasks",
            "TFText>RoundRobinTrim",
            "TFText>Utf8Binarize",
        }
    ),
}


def server_number_or_zero(version: str) -> tuple[int, int]:
    """As `server_number`, and (0, 0) for a version older than is known."""
    try:
        return server_number(version)
    except ValueError:
        return 0, 0


def server_number(version: str) -> tuple[int, int]:
    """A version as a pair that can be compared.

    Args:
        version: As "2.20" or "2.20.0".

    Raises:
        ValueError: It is no version, or one older than is known here.
    """
    match = re.match(r"(\d+)\.(\d+)(\.|$)", version)
    number = (int(match[1]), int(match[2])) if match else (0, 0)
    if number < _number(SERVERS[0]):
        raise ValueError(
            f"`server` must be a version of TF Serving, at least {SERVERS[0]}. "
            f"Received: server={version!r}"
        )
    return number


def least_server(ops: Iterable[str]) -> str:
    """The oldest version of TF Serving that has all these ops linked, by their names.

    Args:
        ops: Names of ops of TensorFlow and tensorflow-text.
    """
    used = set(ops)
    needed = [version for version, new in NEW_OPS.items() if used & new]
    return needed[-1] if needed else SERVERS[0]


def ops_missing_in(ops: Iterable[str], server: str) -> dict[str, str]:
    """The ops that a version of TF Serving lacks.

    Args:
        ops: As in `least_server`.
        server: A version, as "2.18".

    Returns:
        Op -> the version that first has it.

    Raises:
        ValueError: As `server_number`.
    """
    number = server_number(server)
    used = set(ops)
    return {
        op: version
        for version, new in NEW_OPS.items()
        if _number(version) > number
        for op in sorted(used & new)
    }


def _number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)
