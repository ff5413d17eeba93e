"""Published Marian models as translators."""

import os
from typing import Any

from kbert.checkpoints.marian import read_marian
from kbert.models.encoder_arrays import assign_arrays
from kbert.models.transformer import Transformer
from kbert.text.subword import Subword


def load_marian(
    cls: Any, directory: str | os.PathLike[str], dtype: Any = None, **kwargs: Any
) -> Any:
    """Loads a Marian model of Hugging Face's layout; see `kbert.checkpoints.marian`.

    Args:
        cls: `Translator`, or a subclass.
        directory: the folder.
        dtype: type of the computation, or a policy.
        **kwargs: settings of the translator that take the place of the model's own.

    Raises:
        ValueError: a file is damaged, or the model is none that kbert can hold.
        FileNotFoundError: a file is missing.
    """
    checkpoint = read_marian(directory)
    typed = {} if dtype is None else {"dtype": dtype}
    transformer = Transformer(**checkpoint.transformer, **typed)
    assign_arrays(transformer, checkpoint.arrays, lambda name: False)
    source = target = Subword(checkpoint.source_subwords)
    if checkpoint.target_subwords != checkpoint.source_subwords:
        target = Subword(checkpoint.target_subwords)
    return cls(transformer, source, target, **{**checkpoint.settings, **typed, **kwargs})
