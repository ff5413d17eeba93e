"""`EncoderDecoder`: what the head, the search and the exports of translation ask of a model.

Shapes: B rows, S source tokens, T target tokens, K hypotheses of a row that a search keeps, k of
them at a step, L steps so far, V target vocabulary.
"""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class EncoderDecoder(Protocol):
    """A model from source tokens to the next target token.

    The rule about slots: the first step of a search has one hypothesis a row, k = 1, and every
    later one k = K. Their state must have room for K from the beginning, since a loop in a graph
    keeps the shapes that it begins with: `start_decoding` pads it, and `decode_step` writes the
    first k slots. Between two steps the search reorders hypotheses and tells the parents by
    `slots`, int32 (B, k, L): the slot in which each hypothesis was at each step. A state that is a
    history, such as a cache of keys, is read through all of it; one that is replaced at each step,
    such as that of an RNN, through `slots[:, :, time - 1]`.

    The first dimension of each tensor of a state is B. A row of a batch may be all padding.

    A model that is saved also has `architecture`, its name in `kbert.architectures`, and Keras'
    `get_config`. One that may have a shortlist has `candidate_logits`, which maps tokens int32 (C,)
    to a function like `logits` that returns those (..., C) of these tokens alone; `decode_step`
    takes it as a fifth argument, `logits`.
    """

    source_vocabulary_size: int | None  # None where source and target share one vocabulary
    vocabulary_size: int  # V
    max_sequence_length: int  # most tokens of a source or target
    hidden_dim: int  # width of the decoder's states
    num_decoder_layers: int  # layers with attention to the source, of `memory_scores`; may be 0
    num_heads: int  # heads of each
    bert: Any  # an encoder that reads the source too, in its own tokens; None in most models

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Maps inputs of `encode` and `target_token_ids` int (B, T) to float32 logits (B, T, V)."""

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor, as Keras models do."""

    def encode(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encodes `source_token_ids` int (B, S) and `source_padding_mask` bool (B, S).

        The result is the memory of the decoder: tensors whose first dimension is B.
        """

    def target_states(
        self, target_token_ids: Any, memory: dict[str, Any], training: bool | None = None
    ) -> Any:
        """Decodes a known target, int (B, T), which begins with the start token.

        The result is the states (B, T, D) that `logits` takes; that at t sees no later token.
        """

    def logits(self, states: Any) -> Any:
        """Maps hidden states (..., D) of the decoder to float32 logits (..., V)."""

    def start_decoding(
        self, memory: dict[str, Any], slots: int = 1, capacity: int | None = None
    ) -> Any:
        """Returns the state of `decode_step` before the first step, with room for K slots.

        `capacity` is the most steps, where shapes must be static; else None.
        """

    def decode_step(self, token_ids: Any, time: Any, slots: Any, state: Any) -> tuple[Any, Any]:
        """Decodes one more token of every hypothesis.

        Args:
            token_ids: int (B, k), the last token of each.
            time: int32 scalar, the number of tokens before.
            slots: int32 (B, k, L), the slot of each hypothesis at each step.
            state: from `start_decoding` or the previous step, of the same structure and shapes.

        Returns:
            float32 logits (B, k, V), and the new state.
        """

    def memory_scores(self, target_token_ids: Any, memory: dict[str, Any]) -> list[Any]:
        """Returns what each step of a known target attends to in the source.

        The result is `num_decoder_layers` arrays (B, N, T, S) of probabilities.
        """
