"""Options of single architectures are the arguments of their constructors."""

import inspect

import pytest

from kbert.architectures import ENCODER_DECODERS, encoder_decoder_class
from kbert.training.config.architecture_options import ARCHITECTURE_OPTIONS, ArchitectureOptions


def taken(architecture: str) -> set[str]:
    return set(inspect.signature(encoder_decoder_class(architecture).__init__).parameters)


def test_the_help_names_the_architectures_that_have_an_option():
    fields = ArchitectureOptions.__dataclass_fields__
    for name in ARCHITECTURE_OPTIONS:
        having = {one for one in ENCODER_DECODERS if name in taken(one)}
        named, _, _ = fields[name].metadata["help"].partition(":")
        assert {one.strip() for one in named.split(",")} == having, name


@pytest.mark.parametrize(
    "option, value, accepted",
    [
        ("cell", "lstm", True),
        ("cell", "elman", False),
        ("context", "initial", True),
        ("score", "dot", True),
        ("score", "cosine", False),
        ("kernel_width", 5, True),
        ("num_layers", 0, False),
        ("reversed_source", True, True),
    ],
)
def test_values(option: str, value: object, accepted: bool):
    kind = ArchitectureOptions.__dataclass_fields__[option].metadata["kind"]
    assert bool(kind.accepts(value)) == accepted
