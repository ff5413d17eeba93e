"""A Transformer whose blocks also attend to BERT's states of the source (Zhu et al. 2020).

Shapes: B batch, S source length in the Transformer's tokens, L in BERT's, D hidden width, M BERT's.
"""

from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from kbert.architectures import BERT_FUSED
from kbert.layers.fused_blocks import FusedDecoderBlock, FusedEncoderBlock
from kbert.layers.masks import padding_attention_mask
from kbert.models.encoder import Encoder
from kbert.models.encoder_decoders.transformer import Transformer
from kbert.models.weights import (
    assign_arrays,
    encoder_arrays,
    misshapen,
    named_weights,
    trainable_but,
)

_NEW = "/bert_attention/"
# Settings that the function depends on but the weights do not show.
_FUNCTION = ("num_heads", "activation", "norm", "positions", "tied", "layer_norm_epsilon")


@dataclass(frozen=True)
class WarmStart:
    """The result of a warm start: names of weights."""

    loaded: list[str]  # copied from the other model
    new: list[str]  # only in this model, unchanged
    missing: list[str]  # of the other model, without a counterpart here
    mismatched: list[str]  # of another shape


@keras.saving.register_keras_serializable("kbert")
class BertFusedTransformer(Transformer):
    """A `Transformer` with an attention to BERT in every block.

    BERT reads the source in its own tokens, with its own mask; [CLS] and [SEP] are visible. Each
    fused attention has a drop-net, see `kbert.layers.fused_blocks`. BERT is normally frozen;
    it then runs without dropout, also in training (in the paper's code with it), so that its hidden
    states of a text are always the same and can be cached.

    Args:
        *args: sizes and rates, the arguments of `Transformer`.
        bert: the `Encoder` that computes the states, a `Bert` in the paper.
        drop_net: p, the rate of the drop-nets.
        train_bert: whether BERT is trained too.
        branch_weights: see `force_branches`.
        **kwargs: further arguments of `Transformer`.
    """

    architecture = BERT_FUSED

    def __init__(
        self,
        *args: Any,
        bert: Encoder,
        drop_net: float = 1.0,
        train_bert: bool = False,
        branch_weights: tuple[float, float] | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "bert_fused_transformer")
        # The base class makes all layers, and reads these.
        self.drop_net = drop_net
        self.train_bert = train_bert
        self._given_bert: Any = bert
        super().__init__(*args, **kwargs)
        self.force_branches(branch_weights)

    def _make_layers(self) -> None:
        super()._make_layers()
        self.bert = self._given_bert
        self.bert.trainable = self.train_bert

    def _hold_bert(self, value: bool) -> None:
        if self.bert is not None:
            self.bert.trainable = value and self.train_bert

    trainable = trainable_but(
        _hold_bert, "Whether weights are trainable; those of BERT are only where it is trained."
    )

    def _encoder_block(self, name: str) -> FusedEncoderBlock:
        given = {"drop_net": self.drop_net, "dtype": self.dtype_policy, "name": name}
        return FusedEncoderBlock(*self._block_arguments(), **given)

    def _decoder_block(self, name: str) -> FusedDecoderBlock:
        given = {"drop_net": self.drop_net, "dtype": self.dtype_policy, "name": name}
        return FusedDecoderBlock(*self._block_arguments(), **given)

    def _build_blocks(self, states: Any) -> None:
        bert = (None, None, self.bert.hidden_dim)
        for block in self.encoder_blocks:
            block.build(states, bert)
        for block in self.decoder_blocks:
            block.build(states, (states, bert))

    def encode(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encodes the source, with BERT's hidden states of it.

        Args:
            inputs: dict of `source_token_ids` int (B, S), `source_padding_mask` bool (B, S) and
                `bert_padding_mask` bool (B, L) with either `bert_token_ids` int (B, L) or, where
                they were computed before, `bert_states` (B, L, M).
            training: whether dropout and drop-nets are on.

        Returns:
            The memory of the decoder: `states` (B, S, D), `mask` bool (B, 1, 1, S), `bert`
            (B, L, M) and `bert_mask` bool (B, 1, 1, L).

        Raises:
            ValueError: `bert_states` are given in training although BERT is trained too.
        """
        return super().encode(inputs, training)

    def bert_states(self, inputs: dict[str, Any], training: bool | None = None) -> Any:
        """Returns BERT's last hidden states (B, L, M).

        Args:
            inputs: dict of `bert_token_ids` int (B, L) and `bert_padding_mask` bool (B, L).
            training: whether dropout is on, if BERT is trained.
        """
        wanted = {name: inputs[f"bert_{name}"] for name in ("token_ids", "padding_mask")}
        states = self.bert(wanted, training=bool(training) and self.train_bert)["sequence_output"]
        return states if self.train_bert else ops.stop_gradient(states)

    def _beside(self, inputs: dict[str, Any], training: bool | None) -> dict[str, Any]:
        states = inputs.get("bert_states")
        if states is None:
            states = self.bert_states(inputs, training)
        elif training and self.train_bert:
            raise ValueError(
                "`bert_states` must be left out where BERT learns, since its states change with "
                "each update. Received: bert_states in training, with train_bert=True"
            )
        mask = padding_attention_mask(inputs["bert_padding_mask"])
        return {"bert": ops.cast(states, self.compute_dtype), "bert_mask": mask}

    def _encoded(
        self, block: Any, states: Any, mask: Any, memory: dict[str, Any], training: bool | None
    ) -> Any:
        return block(states, memory["bert"], mask, memory["bert_mask"], training=training)

    def _seen(self, memory: dict[str, Any]) -> tuple[Any, Any]:
        return (memory["states"], memory["bert"]), (memory["mask"], memory["bert_mask"])

    def force_branches(self, weights: tuple[float, float] | None) -> None:
        """Fixes the weights of both attentions in all blocks, or restores the drop-nets.

        With (1, 0) the model is the one without BERT. The weights are saved and exported with the
        model. Functions of Keras that were traced before are not affected; what a `Translator`
        translates is.

        Args:
            weights: of the model's own attention and of that to BERT, or None.
        """
        self.branch_weights = None if weights is None else (float(weights[0]), float(weights[1]))
        for block in self.encoder_blocks:
            block.attention_residual.drop_net.forced = self.branch_weights
        for block in self.decoder_blocks:
            block.cross_attention_residual.drop_net.forced = self.branch_weights

    def warm_start_from(self, vanilla: Transformer) -> WarmStart:
        """Copies every weight of a model without BERT.

        Args:
            vanilla: a `Transformer` of the same sizes, kinds of layers and numbers of heads.

        Returns:
            The names of the weights that were loaded, and of those that are new.

        Raises:
            ValueError: `vanilla` computes something else with its weights, anything but the
                attentions to BERT would be new, or a weight of `vanilla` has no counterpart or
                another shape; nothing is changed then.
        """
        arrays = encoder_arrays(vanilla)
        beside = f"{self.bert.name}/"  # BERT keeps its own weights
        own = {name: v for name, v in named_weights(self).items() if not name.startswith(beside)}
        report = WarmStart(
            loaded=sorted(name for name in own if name in arrays),
            new=sorted(name for name in own if name not in arrays),
            missing=sorted(name for name in arrays if name not in own),
            mismatched=sorted(misshapen(own, arrays)),
        )
        not_fused = [name for name in report.new if _NEW not in name]
        lacking = [name for name in own if _NEW in name and name in arrays]
        if report.missing or report.mismatched or not_fused or lacking:
            raise ValueError(
                "`vanilla` must have all weights of this model but the attentions to BERT. "
                f"Without a place here: {report.missing or 'none'}; of another shape: "
                f"{report.mismatched or 'none'}; not in it: {not_fused or 'none'}; attentions to "
                f"BERT in it: {lacking or 'none'}"
            )
        self._check_function(vanilla)
        assign_arrays(self, arrays, may_be_absent=lambda name: name not in report.loaded)
        return report

    def _check_function(self, vanilla: Transformer) -> None:
        """Raises a ValueError unless `vanilla` computes the same function of its weights."""
        others = {key: (getattr(vanilla, key), getattr(self, key)) for key in _FUNCTION}
        told = [f"{key}={a!r} (here {b!r})" for key, (a, b) in others.items() if a != b]
        if told:
            raise ValueError(
                f"`vanilla` must compute as this model does. Received: {', '.join(told)}"
            )

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Makes the model of a configuration from `get_config`."""
        return cls(**{**config, "bert": keras.saving.deserialize_keras_object(config["bert"])})
