"""Choice of the transformers class for a set of heads."""

from collections.abc import Iterable

# The parts of each class's heads, by the prefixes of their names, and whether it has a pooler.
_HEADS = {
    "BertModel": ((), True),
    "BertForSequenceClassification": (("classifier.",), True),
    "BertForTokenClassification": (("classifier.",), False),
    "BertForMultipleChoice": (("classifier.",), True),
    "BertForQuestionAnswering": (("qa_outputs.",), False),
    "BertForMaskedLM": (("cls.predictions.",), False),
    "BertLMHeadModel": (("cls.predictions.",), False),
    "BertForNextSentencePrediction": (("cls.seq_relationship.",), True),
    "BertForPreTraining": (("cls.predictions.", "cls.seq_relationship."), True),
}
# Those for a causal encoder: transformers' pooler reads the first position, which sees only itself
# there.
_CAUSAL = ("BertModel", "BertLMHeadModel", "BertForTokenClassification", "BertForQuestionAnswering")


def choose_architecture(
    heads: Iterable[str], has_pooler: bool, wanted: str | None, causal: bool = False
) -> str:
    """Chooses the class that has exactly these heads.

    Several classes have a `classifier`: the wanted one decides, otherwise the pooler, which
    BertForSequenceClassification has and BertForTokenClassification has not.

    Args:
        heads: Names of the heads' tensors.
        has_pooler: Whether the encoder's pooler is present.
        wanted: The class that the source names, taken if it fits the heads.
        causal: Whether the encoder is causal; then BertLMHeadModel predicts tokens.

    Returns:
        The name of the class.

    Raises:
        ValueError: If no class has such heads.
    """
    heads = list(heads)
    fitting = [name for name, (parts, _) in _HEADS.items() if _fits(heads, parts)]
    if causal:
        fitting = [name for name in fitting if name in _CAUSAL] or fitting
    if wanted in fitting:
        return str(wanted)
    if not fitting:
        raise ValueError(
            f"`heads` must be those of one of {', '.join(_HEADS)}. Received: {', '.join(heads)}"
        )
    for name in fitting:
        if _HEADS[name][1] == has_pooler:
            return name
    return fitting[0]


def check_architecture(
    name: str, heads: Iterable[str], has_pooler: bool, causal: bool = False
) -> None:
    """Checks that a class has exactly these heads, and that the pooler it needs is present.

    A causal encoder needs a class whose head does not read the first position.

    Raises:
        ValueError: The class does not fit the heads, the pooler or a causal encoder.
    """
    heads = list(heads)
    if name not in _HEADS or not _fits(heads, _HEADS[name][0]):
        raise ValueError(
            f"`architecture` must be a class with the heads {', '.join(heads) or '(none)'}. "
            f"Received: architecture={name!r}"
        )
    if causal and name not in _CAUSAL:
        raise ValueError(
            f"`architecture` must be one of {', '.join(_CAUSAL)} for a causal encoder. "
            f"Received: architecture={name!r}"
        )
    if heads and architecture_has_pooler(name) and not has_pooler:
        raise ValueError(
            f"`architecture` must be a class without a pooler, as the checkpoint has none. "
            f"Received: architecture={name!r}"
        )


def architecture_has_pooler(name: str) -> bool:
    """Returns whether the class has the pooler's weights."""
    return _HEADS[name][1]


def _fits(heads: list[str], parts: tuple[str, ...]) -> bool:
    """Returns whether the heads have all these parts and no other."""
    return all(head.startswith(parts) for head in heads) and all(
        any(head.startswith(part) for head in heads) for part in parts
    )
