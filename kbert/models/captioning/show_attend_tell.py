"""The recurrent captioner that looks at an image before each word (Xu et al. 2015).

Shapes: B batch, L places of the map, M width of their vectors, T caption length, E embeddings, D
hidden, W = 2 D width of a state, V vocabulary, K hypotheses a row.
"""

from typing import Any

import keras
from keras import ops

from kbert.architectures import SHOW_ATTEND_TELL
from kbert.layers.embeddings import TokenEmbedding
from kbert.layers.linear import Linear
from kbert.layers.recurrent.attention_decoder import Annotations, Attended, AttentionDecoder
from kbert.layers.recurrent.attention_steps import Sampling
from kbert.models.encoder_decoders.sequence_model import (
    SequenceModel,
    in_slots,
    of_slots,
    repeated,
    widened,
)
from kbert.optimization.next_token_losses import token_cross_entropy

ATTENTIONS = ("soft", "hard", "mean")
# Share of the rows of hard attention that attend softly in training: section 4.1 of the paper.
_SOFT_SHARE = 0.5
# Weight of the entropy of the places, as in the paper's program.
_ENTROPY = 0.002


@keras.saving.register_keras_serializable("kbert")
class ShowAttendTell(SequenceModel):
    """An LSTM that attends to the vectors of an image's map through a gate, with a deep output.

    It has the protocol `EncoderDecoder`; `encode` takes the vectors of a map instead of tokens. The
    embeddings are those of the output.

    Args:
        vocabulary_size: V.
        feature_dim: M.
        hidden_dim: D.
        embedding_dim: E; None is D.
        attention_dim: width of the hidden layer of the scores; None is D.
        attention: "soft", the mean of all places by their weights; "hard", one place, learned by
            REINFORCE, and the likeliest one outside of training; or "mean", the mean of all places
            alike, which sees the image but does not attend.
        gated: whether the state decides how much of the image it takes, the paper's beta.
        max_sequence_length: the most tokens of a caption.
        dropout: rate on embeddings and before the logits.

    Raises:
        ValueError: a name is unknown, or a size is not positive.
    """

    architecture = SHOW_ATTEND_TELL
    source_vocabulary_size: int | None = None
    tied = "all"

    def __init__(
        self,
        vocabulary_size: int,
        feature_dim: int,
        hidden_dim: int = 512,
        embedding_dim: int | None = None,
        attention_dim: int | None = None,
        attention: str = "soft",
        gated: bool = True,
        max_sequence_length: int = 64,
        dropout: float = 0.5,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"name": "show_attend_tell", **kwargs})
        if attention not in ATTENTIONS:
            raise ValueError(
                f"`attention` must be one of {list(ATTENTIONS)}. Received: attention={attention!r}"
            )
        self.feature_dim, self.attention_dim = feature_dim, attention_dim
        self.attention, self.gated = attention, gated
        self.seeds = keras.random.SeedGenerator(name="seed_generator")
        self._keep(
            vocabulary_size=vocabulary_size,
            hidden_dim=hidden_dim,
            embedding_dim=embedding_dim,
            max_sequence_length=max_sequence_length,
            dropout=dropout,
        )

    @property
    def num_decoder_layers(self) -> int:
        """Layers with attention to the image: 0 for the mean of all places."""
        return 0 if self.attention == "mean" else 1

    def _embedding(self, name: str, size: int | None) -> TokenEmbedding:
        return super()._embedding("target_embedding", None)

    def _make_layers(self) -> None:
        dtype, hidden = self.dtype_policy, self.hidden_dim
        self.initial_output = Linear(hidden, "tanh", dtype=dtype, name="initial_output")
        self.initial_cell = Linear(hidden, "tanh", dtype=dtype, name="initial_cell")
        self.decoder = AttentionDecoder(
            hidden,
            "lstm",
            attention_dim=self.attention_dim,
            gated=self.gated,
            hard=self.attention == "hard",
            dtype=dtype,
            name="decoder",
        )
        self.output_state = Linear(self.width, dtype=dtype, name="output_state")
        self.output_context = Linear(
            self.width, use_bias=False, dtype=dtype, name="output_context"
        )

    def _build_layers(self) -> None:
        seen = (None, None, self.feature_dim)
        self.initial_output.build((None, self.feature_dim))
        self.initial_cell.build((None, self.feature_dim))
        self.decoder.build((None, None, self.width), seen)
        self.output_state.build((None, None, self.hidden_dim))
        self.output_context.build(seen)

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Computes logits of the tokens after a known caption, and where each was looked for.

        Args:
            inputs: `features` (B, L, M); `target_token_ids` int (B, T), which begin with the start
                token.
            training: whether dropout is on, and hard attention draws its places.

        Returns:
            `logits` float32 (B, T, V) and `weights` (B, T, L); of hard attention in training also
            `chosen` (B, T, L) and `is_soft` (B, 1), see `attention_loss`.
        """
        memory = self.encode(inputs, training)
        sampling = self._sampling(inputs, memory) if training else None
        states, found = self._decoded(inputs["target_token_ids"], memory, training, sampling)
        outputs = {"logits": self.logits(states), "weights": found.weights}
        if sampling is not None:
            outputs |= {"chosen": found.chosen, "is_soft": sampling.is_soft}
        return outputs

    def _sampling(self, inputs: dict[str, Any], memory: dict[str, Any]) -> Sampling | None:
        """Draws Gumbel noise for the places, and which rows attend softly."""
        if self.attention != "hard":
            return None
        rows, steps = ops.shape(inputs["target_token_ids"])
        shape = (rows, steps, ops.shape(memory["values"])[1])
        uniform = keras.random.uniform(shape, 1e-7, 1.0, "float32", seed=self.seeds)
        coins = keras.random.uniform((rows, 1), 0.0, 1.0, "float32", seed=self.seeds)
        return Sampling(-ops.log(-ops.log(uniform)), ops.cast(coins < _SOFT_SHARE, "float32"))

    def encode(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Prepares the vectors of images.

        Args:
            inputs: dict of `features` (B, L, M).
            training: not read: nothing here is random.

        Returns:
            The memory of the decoder: `values` (B, L, M), the annotations, or their mean alone as
            (B, 1, M); their `keys`; `mask` bool (B, L); `initial` (B, W), the state before the
            first step.
        """
        features = ops.cast(inputs["features"], self.compute_dtype)
        mean = ops.mean(features, axis=1)
        values = mean[:, None] if self.attention == "mean" else features
        annotations = self.decoder.annotations(values, ops.ones(ops.shape(values)[:2], "bool"))
        first = [self.initial_output(mean), self.initial_cell(mean)]
        return {**annotations._asdict(), "initial": ops.concatenate(first, axis=-1)}

    def target_states(
        self, target_token_ids: Any, memory: dict[str, Any], training: bool | None = None
    ) -> Any:
        """Returns the states (B, T, E) that `logits` takes, for the tokens after a known caption.

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: the dict that `encode` returns.
            training: whether dropout is on.
        """
        return self._decoded(target_token_ids, memory, training)[0]

    def _decoded(
        self,
        target_token_ids: Any,
        memory: dict[str, Any],
        training: bool | None = None,
        sampling: Sampling | None = None,
    ) -> tuple[Any, Attended]:
        embedded = self.dropout_layer(self.target_embedding(target_token_ids), training=training)
        found = self.decoder(embedded, _annotations(memory), memory["initial"], sampling)
        read = self._read(found.states, embedded, found.contexts)
        return self.dropout_layer(read, training=training), found

    def _read(self, states: Any, embedded: Any, contexts: Any) -> Any:
        outputs = ops.cast(self.decoder.output(states), embedded.dtype)
        seen = self.output_context(ops.cast(contexts, embedded.dtype))
        return embedded + self.output_state(outputs) + seen

    def memory_scores(self, target_token_ids: Any, memory: dict[str, Any]) -> list[Any]:
        """Returns the weights of the places for a known caption: one array (B, 1, T, L), or none.

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: the dict that `encode` returns.
        """
        if not self.num_decoder_layers:
            return []
        return [self._decoded(target_token_ids, memory)[1].weights[:, None]]

    def start_decoding(
        self, memory: dict[str, Any], slots: int = 1, capacity: int | None = None
    ) -> Any:
        """Returns the state of `decode_step` before the first step: tensors, the rows first.

        Args:
            memory: the dict that `encode` returns.
            slots: K, the most hypotheses a row.
            capacity: not read: no state grows with the steps.
        """
        wide = {name: widened(memory[name]) for name in ("values", "keys")}
        return {**memory, **wide, "initial": repeated(memory["initial"], slots)}

    def decode_step(
        self, token_ids: Any, time: Any, slots: Any, state: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Decodes one more token of every hypothesis; see `kbert.decoding.search`.

        Args:
            token_ids: int (B, k), the last token of each.
            time: int32 scalar, the number of tokens before.
            slots: int32 (B, k, L), the slot of each hypothesis at each step.
            state: from `start_decoding` or the previous step.

        Returns:
            float32 logits (B, k, V), and the new state.
        """
        embedded = self.target_embedding(token_ids)
        before = of_slots(state["initial"], slots, time)
        contexts, _ = self.decoder.attend(before, _annotations(state))
        joined = ops.concatenate([embedded, ops.cast(contexts, embedded.dtype)], axis=-1)
        stepped = self.decoder.step(joined, before)
        logits = self.logits(self._read(stepped, embedded, contexts))
        return logits, {**state, "initial": in_slots(stepped, state["initial"])}

    def attention_loss(self, targets: Any, outputs: dict[str, Any], penalty: float) -> Any:
        """Returns what training adds to the cross-entropy of each row, float32 (B,).

        For soft attention it is the doubly stochastic penalty times `penalty`: over a whole caption
        every place should be looked at. The paper's sum_i (1 - sum_t a_ti)^2 has a least value,
        that of all places alike; here it is what is above that, sum_i (sum_t a_ti - T / L)^2, of
        the same gradient, so that the loss is not mostly a constant. For hard attention it is
        REINFORCE, whose baseline is the mean of the other rows of the batch, so that it is no
        variable, and the entropy of the weights; rows that attended softly have none of it.

        Args:
            targets: int (B, T), the tokens after those of the inputs, -1 for padding.
            outputs: what `call` returned.
            penalty: the weight of the doubly stochastic penalty.
        """
        real = ops.cast(targets >= 0, "float32")
        weights = ops.cast(outputs["weights"], "float32")
        attended = ops.sum(weights * real[..., None], axis=1)
        evenly = ops.mean(attended, axis=-1, keepdims=True)
        found = penalty * ops.sum(ops.square(attended - evenly), axis=-1)
        if self.attention == "mean":
            return ops.zeros_like(found)
        return found if "chosen" not in outputs else found + _reinforced(targets, outputs, real)


def _annotations(memory: dict[str, Any]) -> Annotations:
    return Annotations(memory["values"], memory["keys"], memory["mask"])


def _reinforced(targets: Any, outputs: dict[str, Any], real: Any) -> Any:
    """Returns -(log p(y) - b) log p(s) - c H(a) of each row, float32 (B,)."""
    losses = token_cross_entropy(targets, ops.stop_gradient(outputs["logits"]))
    reward = -ops.cast(ops.sum(losses, axis=-1), "float32")
    rows = ops.cast(ops.shape(reward)[0], reward.dtype)
    baseline = (ops.sum(reward) - reward) / ops.maximum(rows - 1.0, 1.0)
    chances = ops.maximum(ops.cast(outputs["weights"], "float32"), 1e-10)
    of_places = ops.log(ops.sum(chances * ops.cast(outputs["chosen"], "float32"), axis=-1))
    entropy = -ops.sum(chances * ops.log(chances), axis=-1)
    of_steps = (reward - baseline)[:, None] * of_places + _ENTROPY * entropy
    return -ops.sum(of_steps * real, axis=-1) * (1.0 - outputs["is_soft"][:, 0])
