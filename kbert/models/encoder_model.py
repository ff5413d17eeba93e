"""The base class of encoders: checkpoints, and the stack of blocks that most of them have.

Shapes: B batch, T length, R real tokens of a batch, D hidden, N heads.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import keras

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.encoder_layout import check_values
from kbert.checkpoints.arrays.tokenizer_files import byte_level_files_of, find_vocabulary
from kbert.checkpoints.read_checkpoint import WRITERS, read_checkpoint, write_checkpoint
from kbert.layers.embeddings import BertEmbeddings
from kbert.layers.encoder_block import EncoderBlock
from kbert.layers.linear import Linear
from kbert.layers.masks import (
    UnpaddedTokens,
    last_real_state,
    sequence_attention_mask,
    unpadded_tokens,
)
from kbert.models.adapters.adaptable import Adaptable
from kbert.models.adapters.adapter_set import ADAPTERS
from kbert.models.encoder import HeadForm, argument_names, check_inputs, encoder_inputs, ids_checked
from kbert.models.sizes import bert_size
from kbert.models.weights import (
    ADAPTER,
    POOLER,
    NewWeights,
    assign_arrays,
    encoder_arrays,
    trainable_but,
    weights_follow,
)

logger = logging.getLogger(__name__)
# Arguments that runs give to every encoder, and that one of other layers may lack.
_OF_RUNS = ("attention_dropout", "causal", "gradient_checkpointing")
NEW_ADAPTER = "task"  # the name of the adapter that a run trains
_NOT_ENCODER = ("name", "trainable", "dtype", "gradient_checkpointing")
# Groups of rows in training, where batches have mixed lengths: on 16 pairs of GLUE's RTE a step
# of MiniLM takes 1.46 s with one, 1.40 with two, 1.22 with four; short sentences take 10 % more.
_TRAINING_GROUPS = 4


@ids_checked
class EncoderModel(Adaptable):
    """Base class of encoders: reading and writing of checkpoints, and a stack of blocks.

    A subclass makes `embeddings`, blocks and `pooler`, and says in `call` what it computes; one of
    other layers has its own `hidden_states` and `attention_scores`.
    """

    architecture: str  # its name in `kbert.architectures.ENCODERS`
    causal: bool
    # From ids, segments and positions to the input of the first block, or of what `_embedded` puts
    # between.
    embeddings: Any
    embedding_projection: Any = None  # from the width of the embeddings to D, where they differ
    pooler: Any  # layer from (B, D) to (B, D), or None
    blocks: Any = None  # the stack, a block a layer where `layer_blocks` does not say otherwise
    gradient_checkpointing: bool  # whether blocks are recomputed in the backward pass
    initializer_range: float  # standard deviation of the truncated normal initializer
    sequence_form = HeadForm()  # head of a sequence, as the encoder was published with one
    choice_form = HeadForm()  # the same for a choice
    span_dropout = 0.0  # rate of the dropout before the head of answer spans

    @classmethod
    def from_pretrained(cls, name_or_directory: str | os.PathLike[str], **kwargs: Any) -> Self:
        """Loads a published encoder or one from a directory.

        Args:
            name_or_directory: a known name ("bert-base-uncased", "all-MiniLM-L6-v2", ...), an
                `org/name` of the Hugging Face hub, or a directory with a Hugging Face, TF1 BERT,
                Model Garden or kbert checkpoint; the format is detected.
            **kwargs: arguments of the constructor that replace the checkpoint's, such as `dropout`,
                `dtype` or `gradient_checkpointing`.

        Raises:
            ValueError: it is no checkpoint of this encoder, or weights are missing, left over or
                misshapen.
            FileNotFoundError: the directory or name does not exist.
        """
        return cls.from_checkpoint(read_checkpoint(name_or_directory), **kwargs)

    @classmethod
    def from_checkpoint(
        cls,
        checkpoint: Checkpoint,
        *,
        needs_pooler: bool = True,
        adapter: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Makes the encoder of a checkpoint that was read.

        Args:
            checkpoint: a checkpoint from `kbert.checkpoints.read_checkpoint`.
            needs_pooler: whether to warn if the checkpoint has no pooler.
            adapter: settings of a new adapter, as `add_adapter` takes them, that is named "task"
                and trains alone; or None.
            **kwargs: arguments of the constructor that replace the checkpoint's.

        Raises:
            ValueError: it is of another architecture, or weights are missing, left over or
                misshapen.
        """
        if checkpoint.architecture != cls.architecture:
            raise ValueError(
                f"`checkpoint` must be of the architecture {cls.architecture}, as {cls.__name__} "
                f"is. Received: architecture={checkpoint.architecture!r}"
            )
        for line in checkpoint.report:
            logger.info("%s", line)
        if needs_pooler and checkpoint.lacks_pooler:
            logger.warning("The checkpoint has no pooler: it starts from random weights.")
        with weights_follow(not checkpoint.lacks_pooler):
            model = cls(**{**checkpoint.config, **cls._taken(kwargs)})
        if checkpoint.adapter_config:
            model.adapters.restore(checkpoint.adapter_config, model)
            model._freeze_body()
        adapters = {f"{ADAPTER}{name}": array for name, array in checkpoint.adapters.items()}
        assign_arrays(model, checkpoint.arrays | adapters, cls.may_be_absent)
        if adapter is not None:
            if NEW_ADAPTER in model.adapter_names:
                model.set_active_adapters(None)
                model.delete_adapter(NEW_ADAPTER)
            model.add_adapter(NEW_ADAPTER, adapter)
            model.train_adapter(NEW_ADAPTER)
        return model

    @classmethod
    def _taken(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Returns the given arguments without those of runs that the constructor lacks."""
        lacking = [name for name in _OF_RUNS if name in given and name not in argument_names(cls)]
        for name in lacking:
            if given[name] is True:
                raise ValueError(
                    f"`{name}` must be False for a {cls.__name__}. Received: {name}=True"
                )
        return {name: value for name, value in given.items() if name not in lacking}

    @classmethod
    def from_size(cls, size: str, vocabulary_size: int = 30522, **kwargs: Any) -> Self:
        """Makes a randomly initialized encoder of a published size of BERT.

        Args:
            size: "tiny", "mini", "small", "medium", "base" or "large".
            vocabulary_size: number of tokens.
            **kwargs: further arguments of the constructor.
        """
        made: Any = cls
        return made(vocabulary_size, **{**bert_size(size), **cls._taken(kwargs)})

    @staticmethod
    def may_be_absent(name: str) -> bool:
        """Returns whether a checkpoint may lack a weight, which is then randomly initialized.

        Args:
            name: the path of the weight without the model's name, such as `pooler/kernel`.
        """
        return name.startswith(POOLER)

    def to_checkpoint(self) -> Checkpoint:
        """Returns the weights as named arrays (float32 for a mixed policy), with the config.

        Those of adapters are apart from the others.
        """
        config = {k: v for k, v in self.get_config().items() if k not in _NOT_ENCODER}
        named = config.pop(ADAPTERS, {})
        if not self.causal:  # as folders were written before there was a choice
            config.pop("causal", None)
        arrays = encoder_arrays(self)
        return Checkpoint(
            config=config,
            arrays={n: array for n, array in arrays.items() if not n.startswith(ADAPTER)},
            adapters={
                n.removeprefix(ADAPTER): a for n, a in arrays.items() if n.startswith(ADAPTER)
            },
            adapter_config=named,
            architecture=self.architecture,
        )

    def save_pretrained(
        self,
        directory: str | os.PathLike[str],
        format: str = "kbert",
        vocabulary: str | os.PathLike[str] | None = None,
        lowercase: bool = True,
        overwrite: bool = False,
    ) -> Path:
        """Writes the encoder for `from_pretrained`, or for other packages; returns the directory.

        Args:
            directory: the directory to make.
            format: "kbert", "huggingface" or "tf1".
            vocabulary: a vocabulary file to put beside the weights; `vocab.json` with `merges.txt`
                beside it, or `tokenizer.json`, for a byte-level BPE.
            lowercase: whether its tokenizer lower-cases; written for readers of the directory.
            overwrite: whether an existing directory may be replaced, with all that it holds.

        Raises:
            ValueError: the format is unknown, or is not "kbert" for an encoder with adapters; or
                the vocabulary has more tokens than the encoder.
            FileExistsError: the directory exists, and may not be replaced.
        """
        checkpoint = self.to_checkpoint()
        if format not in WRITERS:
            raise ValueError(
                f"`format` must be one of {list(WRITERS)}. Received: format={format!r}"
            )
        checkpoint.check_format(format)
        if vocabulary is not None:
            path = Path(vocabulary)
            if path.suffix == ".json":
                checkpoint.tokenizer_files = byte_level_files_of(path, self.vocabulary_size)
            else:
                checkpoint.vocabulary_path = path
                find_vocabulary(path.parent, self.vocabulary_size, path.name)
        checkpoint.lowercase = lowercase and not checkpoint.tokenizer_files
        write_checkpoint(checkpoint, directory, format, overwrite)
        return Path(directory)

    @property
    def layer_blocks(self) -> Sequence[EncoderBlock]:
        """Returns the block of each layer in order; layers may share one."""
        if self.blocks is None:
            raise NotImplementedError(f"{type(self).__name__} must name the blocks of its layers")
        return self.blocks

    @property
    def token_activation(self) -> str:
        """Returns the activation of the head of masked tokens."""
        return str(self.activation)

    trainable = trainable_but(
        lambda model, _: model._freeze_body(),
        "Whether weights are trainable; beside adapters most never are.",
    )

    def _freeze_body(self) -> None:
        if getattr(self, "built", False):
            super()._freeze_body()

    def build(self, input_shape: Any = None) -> None:
        """Creates all weights; their shapes do not depend on the input."""
        if getattr(self, "built", False):
            return
        project, embedded = self.embedding_projection, (None, None, self.embeddings.hidden_dim)
        hidden = embedded if project is None else (None, None, project.units)
        blocks = [(block, hidden) for block in dict.fromkeys(self.layer_blocks)]
        parts = [(self.embeddings, None), (project, embedded), *blocks, (self.pooler, hidden[1:])]
        for layer, shape in parts:
            if layer is not None and not layer.built:
                layer.build(shape)
        self.built = True
        self._freeze_body()
        if not self.trainable:  # by the constructor, whose argument does not reach the layers
            keras.Model.trainable.fset(self, False)

    def _initializer(self) -> dict[str, Any]:
        return keras.initializers.serialize(NewWeights(stddev=self.initializer_range))

    def _embeddings(self, width: int, first_position: int = 0) -> BertEmbeddings:
        check_values(vars(self))  # the arguments, as this is the first layer that is made
        return BertEmbeddings(
            self.vocabulary_size,
            width,
            self.max_sequence_length,
            self.num_segments,
            self.dropout,
            self.layer_norm_epsilon,
            self._initializer(),
            first_position,
            dtype=self.dtype_policy,
            name="embeddings",
        )

    def _block(self, index: int) -> EncoderBlock:
        return EncoderBlock(
            num_heads=self.num_heads,
            intermediate_dim=self.intermediate_dim,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation=self.activation,
            epsilon=self.layer_norm_epsilon,
            kernel_initializer=self._initializer(),
            dtype=self.dtype_policy,
            name=f"encoder_block_{index}",
        )

    def _linear(self, activation: str | None, name: str) -> Linear:
        given = {"kernel_initializer": self._initializer(), "dtype": self.dtype_policy}
        return Linear(self.hidden_dim, activation, **given, name=name)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        # Checked before Keras converts them to tensors or raises its own error.
        return super().__call__(encoder_inputs(inputs, self), *args, **kwargs)

    def _outputs(self, inputs: Any, training: bool | None) -> dict[str, Any]:
        """Computes `call`."""
        padding_mask = inputs.get("padding_mask")
        if padding_mask is not None and None in padding_mask.shape:
            tokens = unpadded_tokens(padding_mask, self.causal, _TRAINING_GROUPS if training else 1)
            return self._outputs_of_tokens(inputs, tokens, training)
        mask = self._mask(inputs)
        hidden = self._embed(inputs, training)
        for block, adapter in self._stack(inputs):
            hidden = self._encode(block, hidden, mask, training, adapter)
        read = last_real_state(hidden, padding_mask) if self.causal else hidden[:, 0]
        return self._with_pooled({"sequence_output": hidden}, read)

    def _with_pooled(self, outputs: dict[str, Any], read: Any) -> dict[str, Any]:
        return outputs if self.pooler is None else {**outputs, "pooled_output": self.pooler(read)}

    def _outputs_of_tokens(
        self, inputs: Any, tokens: UnpaddedTokens, training: bool | None
    ) -> dict[str, Any]:
        """Computes `call` for real tokens only; the states of padded positions are 0."""
        segment_ids = inputs.get("segment_ids")
        hidden = self._embedded(
            tokens.of(inputs["token_ids"]),
            None if segment_ids is None else tokens.of(segment_ids),
            tokens.positions(),
            training,
        )
        for block, adapter in self._stack(inputs, tokens):
            hidden = self._encode(block, hidden, tokens, training, adapter)
        read = tokens.last_states(hidden) if self.causal else tokens.first_states(hidden)
        return self._with_pooled({"sequence_output": tokens.in_rows(hidden)}, read)

    def hidden_states(self, inputs: Any, training: bool | None = None) -> list[Any]:
        """Returns the embeddings and every block's output: num_layers + 1 arrays (B, T, D).

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
            training: whether dropout is on.
        """
        mask = self._mask(inputs)
        states = [self._embed(inputs, training)]
        for block, adapter in self._stack(inputs):
            states.append(self._encode(block, states[-1], mask, training, adapter))
        return states

    def attention_scores(self, inputs: Any) -> list[Any]:
        """Returns every block's attention probabilities, without dropout: num_layers (B, N, T, T).

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
        """
        mask = self._mask(inputs)
        states = self.hidden_states(inputs)
        return [
            block.scores(state, mask, adapter)
            for (block, adapter), state in zip(self._stack(inputs), states)
        ]

    def _mask(self, inputs: Any) -> Any:
        check_inputs(inputs)
        return sequence_attention_mask(inputs["token_ids"], inputs.get("padding_mask"), self.causal)

    def _embed(self, inputs: Any, training: bool | None) -> Any:
        return self._embedded(inputs["token_ids"], inputs.get("segment_ids"), None, training)

    def _embedded(
        self, token_ids: Any, segment_ids: Any, positions: Any, training: bool | None
    ) -> Any:
        """Returns the input of the first block; overridden where that is something else."""
        embedded = self.embeddings(token_ids, segment_ids, positions, training=training)
        project = self.embedding_projection
        return embedded if project is None else project(embedded)

    def _encode(
        self, block: EncoderBlock, hidden: Any, mask: Any, training: bool | None, adapter: Any
    ) -> Any:
        known = {"attention_mask": mask, "training": training}
        if adapter is not None:
            known["adapter"] = adapter
        if not (self.gradient_checkpointing and training):
            return block(hidden, **known)
        # The seeds are drawn outside, so that recomputation drops the same units.
        seeds = block.draw_seeds()
        recomputed = keras.remat(lambda x: block(x, **known, seeds=seeds))
        return recomputed(hidden)
