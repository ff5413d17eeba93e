"""Options of single architectures of translators; None is the architecture's own default."""

from dataclasses import dataclass

from kbert.options.kinds import choice, flag, option, whole

_GROUP = "Model"
_LEAST_ONE = whole(1, optional=True)


@dataclass(frozen=True)
class ArchitectureOptions:
    """Arguments that only some constructors have; the others do not accept them."""

    embedding_dim: int | None = option(
        None, _LEAST_ONE, _GROUP,
        "rnn, bahdanau, convs2s: width of embeddings; by default hidden_dim.",
    )
    num_layers: int | None = option(
        None, _LEAST_ONE, _GROUP, "rnn: recurrent layers on each side; by default 1."
    )
    cell: str | None = option(
        None, choice("gru", "gru_reset_after", "lstm", optional=True), _GROUP,
        "rnn, bahdanau: gru, gru_reset_after (PyTorch's) or lstm.",
    )
    context: str | None = option(
        None, choice("each_step", "initial", optional=True), _GROUP,
        "rnn: the source's vector is read at each_step, or is the decoder's initial state.",
    )
    reversed_source: bool = option(
        False, flag(), _GROUP, "rnn: whether the source is read from its end to its beginning."
    )
    encoder_dim: int | None = option(
        None, _LEAST_ONE, _GROUP,
        "bahdanau: width of the encoder in each direction; by default hidden_dim.",
    )
    score: str | None = option(
        None, choice("additive", "bilinear", "dot", optional=True), _GROUP,
        "bahdanau: how a state and a source piece are compared: additive, bilinear or dot.",
    )
    attention_dim: int | None = option(
        None, _LEAST_ONE, _GROUP,
        "bahdanau: hidden width of additive scores; by default hidden_dim.",
    )
    kernel_width: int | None = option(
        None, _LEAST_ONE, _GROUP, "convs2s: pieces that a convolution sees, an odd number."
    )


# Names of these options.
ARCHITECTURE_OPTIONS = tuple(ArchitectureOptions.__dataclass_fields__)
