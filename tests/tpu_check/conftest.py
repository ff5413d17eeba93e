"""The tiny files that the tests of training made."""

from tests.training.conftest import tiny  # noqa: F401
