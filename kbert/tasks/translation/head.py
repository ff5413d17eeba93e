"""Translation: the next token of the target, at every position."""

from typing import Any

import keras

from kbert.models.encoder_decoders.encoder_decoder import EncoderDecoder
from kbert.optimization.adamw import AdamW
from kbert.optimization.next_token_losses import (
    LabelSmoothedCrossEntropy,
    NextTokenAccuracy,
    Perplexity,
)
from kbert.optimization.schedules import InverseSquareRootDecay
from kbert.pipelines.task_model import TaskModel

WARMUP_STEPS = 4000


@keras.saving.register_keras_serializable("kbert")
class Translation(TaskModel):
    """An `EncoderDecoder` that learns to predict the target, token by token.

    Targets are int (B, T), the tokens after those of `target_token_ids`; -1 is ignored.
    `label_smoothing` is the share of the target's probability that is spread over all tokens.
    """

    parts = ("transformer", "source_subwords", "target_subwords", "bert_tokenizer", "shortlist")
    arguments: tuple[str, ...] = ("label_smoothing",)

    def __init__(
        self, transformer: EncoderDecoder, label_smoothing: float = 0.1, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.transformer: Any = transformer  # a fused one has a `bert` too
        self.label_smoothing = label_smoothing
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the Transformer has its weights."""

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> Any:
        """Maps the inputs of an `EncoderDecoder` to float32 logits (B, T, V).

        Args:
            inputs: dict of `source_token_ids` int (B, S), `source_padding_mask` bool (B, S) and
                `target_token_ids` int (B, T); with a BERT its inputs too.
            training: whether dropout is on.
        """
        return self.transformer(inputs, training=training)

    def default_loss(self) -> Any:
        """Cross-entropy with smoothed labels, the mean over all real tokens."""
        return LabelSmoothedCrossEntropy(self.label_smoothing)

    def default_optimizer(self) -> Any:
        """Adam with the schedule of Vaswani et al. 2017, section 5.3."""
        rate = InverseSquareRootDecay(WARMUP_STEPS, hidden_dim=self.transformer.hidden_dim)
        return AdamW(rate, 0.0, 0.9, 0.98, 1e-9, global_clipnorm=None)

    def default_metrics(self) -> list[Any]:
        """Accuracy and perplexity of the next token, with teacher forcing."""
        return [NextTokenAccuracy(), Perplexity()]
