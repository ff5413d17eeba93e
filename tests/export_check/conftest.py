"""The exports that the tests of serving made."""

from tests.serving.conftest import (  # noqa: F401
    classifier,
    exported_path,
    meter,
    meter_path,
    programs,
    texts,
)
