"""Choice of the transformers class for a set of heads."""

from collections.abc import Iterable

from kbert.checkpoints.arrays.encoder_layout import EncoderLayout
from kbert.checkpoints.encoders.bert import LAYOUT as BERT


def choose_architecture(
    heads: Iterable[str],
    has_pooler: bool,
    wanted: str | None,
    causal: bool = False,
    layout: EncoderLayout = BERT,
) -> str:
    """Chooses the class that has exactly these heads.

    Several classes have a `classifier`: the wanted one decides, otherwise the pooler, which
    BertForSequenceClassification has and BertForTokenClassification has not.

    Args:
        heads: Names of the heads' tensors.
        has_pooler: Whether the encoder's pooler is present.
        wanted: The class that the source names, taken if it fits the heads.
        causal: Whether the encoder is causal; then BertLMHeadModel predicts tokens.
        layout: The layout of the encoder.

    Returns:
        The name of the class.

    Raises:
        ValueError: If no class has such heads.
    """
    heads = list(heads)
    classes = layout.huggingface.classes
    fitting = [name for name, (parts, _) in classes.items() if _fits(heads, parts)]
    if causal:
        for_causal = layout.huggingface.causal_classes
        fitting = [name for name in fitting if name in for_causal] or fitting
    if wanted in fitting:
        return str(wanted)
    if not fitting:
        raise ValueError(
            f"`heads` must be those of one of {', '.join(classes)}. Received: {', '.join(heads)}"
        )
    for name in fitting:
        if classes[name][1] == has_pooler:
            return name
    return fitting[0]


def check_architecture(
    name: str,
    heads: Iterable[str],
    has_pooler: bool,
    causal: bool = False,
    layout: EncoderLayout = BERT,
) -> None:
    """Checks that a class has exactly these heads, and that the pooler it needs is present.

    A causal encoder needs a class whose head does not read the first position.

    Raises:
        ValueError: The class does not fit the heads, the pooler or a causal encoder.
    """
    heads = list(heads)
    classes, for_causal = layout.huggingface.classes, layout.huggingface.causal_classes
    if name not in classes or not _fits(heads, classes[name][0]):
        raise ValueError(
            f"`architecture` must be a class with the heads {', '.join(heads) or '(none)'}. "
            f"Received: architecture={name!r}"
        )
    if causal and name not in for_causal:
        raise ValueError(
            f"`architecture` must be one of {', '.join(for_causal) or '(none)'} for a causal "
            f"encoder. Received: architecture={name!r}"
        )
    if heads and classes[name][1] and not has_pooler:
        raise ValueError(
            f"`architecture` must be a class without a pooler, as the checkpoint has none. "
            f"Received: architecture={name!r}"
        )


def _fits(heads: list[str], parts: tuple[str, ...]) -> bool:
    """Returns whether the heads have all these parts and no other."""
    return all(head.startswith(parts) for head in heads) and all(
        any(head.startswith(part) for head in heads) for part in parts
    )
