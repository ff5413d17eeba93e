"""Pretraining: masked or causal language modelling, and next sentence prediction."""

from typing import Any

import keras
from keras import ops

from kbert.layers.linear import normal_linear
from kbert.layers.masked_language_head import MaskedLanguageHead
from kbert.models.encoder import Encoder, leave_pooler, read_pooler
from kbert.optimization.adamw import AdamW
from kbert.optimization.losses import SoftmaxCrossEntropy, widened
from kbert.optimization.next_token_losses import (
    LabelSmoothedCrossEntropy,
    NextSentenceMetrics,
    PredictedTokenMetrics,
)
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.pipelines.task_model import TaskModel
from kbert.tasks.pretraining.objectives import (
    LEARNING_RATE,
    OBJECTIVES,
    TOTAL_STEPS,
    WARMUP_STEPS,
    has_pairs,
    is_causal,
)

PAIRS = "next_sentence"


@keras.saving.register_keras_serializable("kbert")
class Pretraining(TaskModel):
    """Predicts tokens from their hidden states, and whether two sentences belong together.

    Source: Devlin et al. 2019, section 3.1 and, for the other objectives, 5.1. The output matrix of
    the tokens is the encoder's own embedding table.

    Targets: `masked_tokens` int (B, P), the ids of the tokens at `masked_positions`, or else
    `next_tokens` int (B, T), the token after each, -1 where ignored; `next_sentence` int (B,), 0
    where the second sentence follows the first, 1 where it does not. Each objective has only the
    targets that it learns.

    `objective` is "mlm_nsp" (masked tokens and next sentence), "mlm" (masked tokens only), "lm"
    (the next token, from left to right) or "lm_nsp"; the encoder is causal for "lm" and "lm_nsp"
    alone. With `tied=False` the output matrix is one of its own.

    Raises:
        ValueError: `objective` is none of these, or does not fit the encoder.
    """

    arguments: tuple[str, ...] = ("objective",)

    def __init__(
        self, encoder: Encoder, objective: str = "mlm_nsp", tied: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if objective not in OBJECTIVES:
            raise ValueError(
                f"`objective` must be one of {list(OBJECTIVES)}. Received: objective={objective!r}"
            )
        if is_causal(objective) != encoder.causal:
            raise ValueError(
                '`encoder.causal` must be True for the objectives "lm" and "lm_nsp", and False for '
                f"the others. Received: objective={objective!r}, causal={encoder.causal}"
            )
        if has_pairs(objective) and encoder.pooler is None:
            raise ValueError(
                f'`objective` must be "mlm" or "lm" for a {type(encoder).__name__}, which has no '
                f"pooler. Received: objective={objective!r}"
            )
        self.encoder = encoder
        self.objective = objective
        self.tied = tied
        self.token_head = MaskedLanguageHead(
            encoder.vocabulary_size,
            encoder.token_activation,
            encoder.layer_norm_epsilon,
            encoder.initializer_range,
            tied,
            dtype=self.dtype_policy,
            name="token_head",
        )
        self.token_metrics = PredictedTokenMetrics("next_token" if encoder.causal else "masked")
        if self.learns_pairs:
            self.pair_head = normal_linear(
                2, encoder.initializer_range, dtype=self.dtype_policy, name="pair_head"
            )
            self.pair_metrics = NextSentenceMetrics()
        self.build()

    @property
    def learns_pairs(self) -> bool:
        """True for objectives with next sentence prediction."""
        return has_pairs(self.objective)

    @property
    def tokens(self) -> str:
        """The name of the tokens among targets and outputs: "masked_tokens" or "next_tokens"."""
        return "next_tokens" if self.encoder.causal else "masked_tokens"

    def build(self, input_shape: Any = None) -> None:
        """Creates the heads' weights."""
        if getattr(self, "built", False):
            return
        hidden_dim = self.encoder.hidden_dim
        table = self.encoder.embeddings.token_embedding.embeddings
        self.token_head.build((None, hidden_dim), tuple(table.shape))
        if self.learns_pairs:
            self.pair_head.build((None, hidden_dim))
            read_pooler(self.encoder)
        else:
            leave_pooler(self.encoder)
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> dict[str, Any]:
        """Predicts tokens, and whether sentences belong together.

        Args:
            inputs: the inputs of `Bert`, and `masked_positions` int (B, P), the positions at which
                a token is predicted. Logits are computed only there, or, where they are absent, as
                for "lm", at all T positions. Padding of the P positions may be any position.
            training: whether dropout is on.

        Returns:
            `masked_tokens` (B, P, V) or `next_tokens` (B, T, V), and `next_sentence` (B, 2), where
            the objective has them: float32 logits.
        """
        outputs = self.encoder(inputs, training=training)
        states = outputs["sequence_output"]
        if "masked_positions" in inputs:
            states = gathered(states, inputs["masked_positions"])
        found = {self.tokens: self.token_logits(states, training)}
        if self.learns_pairs:
            found[PAIRS] = self.pair_logits(outputs["pooled_output"])
        return found

    def token_logits(self, states: Any, training: bool | None = None) -> Any:
        """Maps hidden states (..., D) of the encoder to float32 logits (..., V).

        Args:
            states: (..., D), hidden states of the encoder.
            training: whether dropout is on; there is none here.
        """
        table = ops.convert_to_tensor(self.encoder.embeddings.token_embedding.embeddings)
        return self.token_head(states, table, training=training)

    def pair_logits(self, pooled: Any) -> Any:
        """Maps pooled outputs (B, D) to float32 logits (B, 2): it follows, it does not.

        Args:
            pooled: (B, D), the encoder's `pooled_output`.
        """
        return widened(self.pair_head(pooled))

    def head_layers(self) -> dict[str, Any]:
        """Returns the layers of the heads, by their names in Hugging Face's checkpoints."""
        output = (
            {"cls.predictions": self.token_head.output_bias}
            if self.tied
            else {"cls.predictions.decoder": self.token_head.decoder}
        )
        layers = {
            **output,
            "cls.predictions.transform.dense": self.token_head.transform,
            "cls.predictions.transform.LayerNorm": self.token_head.layer_norm,
        }
        return {**layers, "cls.seq_relationship": self.pair_head} if self.learns_pairs else layers

    def get_config(self) -> dict[str, Any]:
        # As models were saved before there was a choice.
        return {**super().get_config(), **({} if self.tied else {"tied": False})}

    def default_loss(self) -> dict[str, Any]:
        """Cross-entropies: the mean over all predicted tokens, and the mean over all pairs."""
        losses: dict[str, Any] = {self.tokens: LabelSmoothedCrossEntropy(0.0)}
        return {**losses, PAIRS: SoftmaxCrossEntropy()} if self.learns_pairs else losses

    def default_optimizer(self) -> Any:
        """AdamW as in the paper, for a million steps."""
        rate = WarmupLinearDecay(LEARNING_RATE, TOTAL_STEPS, WARMUP_STEPS)
        return AdamW(rate, epsilon=1e-6)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Keras' `compute_metrics`; updates the metrics of tokens and of pairs too."""
        self.token_metrics.update_state(y[self.tokens], y_pred[self.tokens], sample_weight)
        if self.learns_pairs:
            self.pair_metrics.update_state(y[PAIRS], y_pred[PAIRS], sample_weight)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def get_metrics_result(self) -> dict[str, Any]:
        """Keras' `get_metrics_result`, without the batch mean of a loss that has an exact mean."""
        found = super().get_metrics_result()
        found.pop(f"{self.tokens}_loss", None)
        return found


def gathered(states: Any, positions: Any) -> Any:
    """Gathers states (B, T, D) at positions int (B, P); returns (B, P, D)."""
    batch, length, hidden_dim = ops.shape(states)
    starts = ops.arange(batch, dtype="int32")[:, None] * length
    places = ops.reshape(starts + ops.cast(positions, "int32"), (-1,))
    found = ops.take(ops.reshape(states, (-1, hidden_dim)), places, axis=0)
    return ops.reshape(found, (*ops.shape(positions), hidden_dim))
