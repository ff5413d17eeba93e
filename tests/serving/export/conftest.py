"""Exports are run as servers run them."""

from collections.abc import Iterator

import pytest
import tensorflow as tf


@pytest.fixture(autouse=True)
def optimized_graphs() -> Iterator[None]:
    """Graphs are optimized, as every server does it with an export.

    Only here: tests of what asks an export would take a quarter longer, and show nothing more.
    """
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})
    yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
