"""TensorFlow, imported only when a file of its own format is read or written."""

from typing import Any


def import_tensorflow(purpose: str) -> Any:
    """Imports TensorFlow.

    Args:
        purpose: What it is needed for, for the error.

    Returns:
        The module.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        import tensorflow
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs TensorFlow: pip install tensorflow. Formats with safetensors files "
            "do not need it."
        ) from error
    return tensorflow
