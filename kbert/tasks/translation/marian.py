"""Published Marian models as translators."""

import os
from typing import Any

from kbert.checkpoints.marian.files import read_marian
from kbert.tasks.translation.saved_translator import translator_from


def load_marian(
    cls: Any, directory: str | os.PathLike[str], dtype: Any = None, **kwargs: Any
) -> Any:
    """Loads a Marian model of Hugging Face's layout; see `kbert.checkpoints.marian.files`.

    Args:
        cls: `Translator`, or a subclass.
        directory: the folder.
        dtype: type of the computation, or a policy.
        **kwargs: settings of the translator that take the place of the model's own.

    Raises:
        ValueError: a file is damaged, or the model is none that kbert can hold.
        FileNotFoundError: a file is missing.
    """
    return translator_from(cls, read_marian(directory), dtype, **kwargs)
