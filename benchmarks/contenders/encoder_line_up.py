"""Who runs the forward pass and train step of BERT side by side."""

from collections.abc import Iterator, Sequence
from typing import Any

from side_by_side.contender import Contender

WORKS = ("forward", "train")
FORWARD = ("forward",)
# Not all at once: each process keeps some 4 GiB for the larger size.
LOTS = (("transformers", "keras-hub"), ("Model Garden",))


def contenders(
    size: list[int], precision: str, lot: Sequence[str], python: str, gemm: int
) -> list[Contender]:
    """kbert, the libraries of a lot and the matrix products, in "float32" or "bfloat16"."""
    low = precision == "bfloat16"
    policy = "mixed_bfloat16" if low else "float32"
    made = [kbert(policy, WORKS, size)]
    if low:
        made.append(kbert("bfloat16", FORWARD, size))
    if "transformers" in lot:
        made.extend(transformers(low, python, size))
    if "keras-hub" in lot:
        made.extend(keras_library("keras-hub", "keras-hub", low, size=size, policy=policy))
    if "Model Garden" in lot:
        package = "tf-models-official"
        made.extend(keras_library("Model Garden", package, low, size=size, policy=policy))
    limit: dict[str, Any] = {"size": gemm, "precision": precision}
    made.append(Contender("TensorFlow GEMM", "contenders.tensorflow_gemm", ("gemm",), **limit))
    made.append(Contender("torch GEMM", "peers.torch_gemm", ("gemm",), python, **limit))
    return made


def kbert(policy: str, works: Sequence[str], size: list[int]) -> Contender:
    """kbert with a dtype policy."""
    module = "contenders.kbert_encoder_step"
    return Contender(f"kbert {policy}", module, works, size=size, policy=policy)


def transformers(low: bool, python: str, size: list[int]) -> Iterator[Contender]:
    """transformers; for bfloat16 by autocast, and forward with bfloat16 weights."""
    module = "peers.torch_encoder_step"
    options = {"size": size, "autocast": low, "whole_bfloat16": False}
    name = "transformers autocast" if low else "transformers"
    yield Contender(name, module, WORKS, python, **options)
    if low:
        options = {"size": size, "autocast": False, "whole_bfloat16": True}
        yield Contender("transformers bfloat16", module, FORWARD, python, **options)


def keras_library(name: str, package: str, low: bool, **settings: Any) -> Iterator[Contender]:
    """keras-hub or Model Garden, as a graph and, in float32, by XLA."""
    for mode in ("graph",) if low else ("graph", "XLA"):
        options = {**settings, "library": package, "xla": mode == "XLA"}
        yield Contender(f"{name} {mode}", "peers.keras_encoder_step", WORKS, **options)
