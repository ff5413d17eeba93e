"""The names of tensors in Hugging Face checkpoints: prefixes, old spellings, heads.

The gamma and beta of old files come from their conversion from TensorFlow.
"""

from collections.abc import Iterable

from kbert.checkpoints.arrays.encoder_layout import EncoderLayout
from kbert.checkpoints.encoders.bert import LAYOUT as BERT

HEAD_PREFIXES = ("classifier.", "qa_outputs.", "cls.")
# Buffers that older versions saved with the weights: position ids and zeros.
BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
_OLD_ENDS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


def modern_names(
    names: Iterable[str], report: list[str], layout: EncoderLayout = BERT
) -> dict[str, str]:
    """Maps current names, without the prefix of the encoder, to the names in a file.

    Args:
        names: The names in the file.
        report: Gets a sentence about each kind of change.
        layout: The layout of the encoder.

    Returns:
        Current name -> name in the file.

    Raises:
        ValueError: If two tensors of the file are the same weight.
    """
    modern: dict[str, str] = {}
    twice = []
    renamed = 0
    for name in sorted(names):
        new = layout.huggingface.head_of_file(name.removeprefix(layout.huggingface.prefix))
        for old_end, new_end in _OLD_ENDS.items():
            if new.endswith(old_end):
                new = new.removesuffix(old_end) + new_end
                renamed += 1
        if new in modern:
            twice.append(f"{modern[new]} and {name}")
        modern[new] = name
    if twice:
        raise ValueError(f"Each weight must be there once. Received: {'; '.join(twice)}")
    if renamed:
        report.append(f"Read gamma and beta as weight and bias in {renamed} LayerNorm tensors.")
    return modern


def is_head(name: str) -> bool:
    """Returns whether a tensor belongs to a known task head."""
    return name.startswith(HEAD_PREFIXES)
