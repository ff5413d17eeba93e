"""The translator of a run: new or warm-started, optionally fused with BERT; means of its weights.

Averaging the weights of the last epochs is from Vaswani et al. 2017, section 6.1.
"""

import inspect
import re
import shutil
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
from safetensors.numpy import load_file

from kbert.architectures import BERT_FUSED, TRANSFORMER, encoder_decoder_class
from kbert.checkpoints.arrays.checkpoint_files import write_safetensors
from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.models.encoder import encoder_of
from kbert.models.encoder_decoders.bert_fused_transformer import WarmStart
from kbert.models.sizes import transformer_size
from kbert.models.weights import assign_arrays, encoder_arrays, named_weights
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import InverseSquareRootDecay
from kbert.options.configuration import check_default
from kbert.pipelines.tokenizers import tokenizer_of
from kbert.storage.files import atomic_directory
from kbert.tasks.translation.model import Translator
from kbert.text.subword import Subword
from kbert.training.config.architecture_options import ARCHITECTURE_OPTIONS
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.runs.load_model import load_model
from kbert.training.runs.run_directory import model_of

_NUMBERS = (
    *("num_encoder_layers", "num_decoder_layers", "hidden_dim", "num_heads"), "intermediate_dim"
)
_CHOICES = ("max_sequence_length", "norm", "positions", "dropout", "attention_dropout")
_DROPOUT = ("dropout", "attention_dropout")
_SETTINGS = (
    *("beam_size", "length_penalty", "alpha", "nbest", "length_ratio", "length_extra"),
    "label_smoothing",
)
_NOT_ARGUMENTS = ("name", "trainable", "dtype")


@dataclass(frozen=True)
class Built:
    """A translator before its training, not compiled; no `warm_start` if all weights are new."""

    model: Translator
    warm_start: WarmStart | None


def load_warm_start(config: TranslationConfig) -> Translator | None:
    """Loads the translator of a run's warm start, which has no BERT, or returns None."""
    if config.warm_start is None:
        return None
    model = load_model(config.warm_start)
    if not isinstance(model, Translator) or model.bert_tokenizer is not None:
        received = "one with a BERT" if isinstance(model, Translator) else type(model).__name__
        raise ValueError(
            f"`warm_start` must be a translator without BERT. Received: {config.warm_start}, "
            f"{received}"
        )
    architecture = model.transformer.architecture
    if config.bert is not None and architecture != TRANSFORMER:
        raise ValueError(
            f"`warm_start` must be a {TRANSFORMER} with `bert`. Received: {config.warm_start}, "
            f"of the architecture {architecture}"
        )
    return model


def build_translator(
    config: TranslationConfig, subwords: tuple[Subword, Subword], warm: Translator | None = None
) -> Built:
    """Creates the model of a run, on the subwords of source and target; with `warm` its own."""
    if warm is None:
        kind = _plain_class(config)
        arguments = model_arguments(config, subwords)
    else:
        kind = encoder_decoder_class(warm.transformer.architecture)
        saved = warm.transformer.get_config()
        arguments = {name: value for name, value in saved.items() if name not in _NOT_ARGUMENTS}
        arguments |= {name: getattr(config, name) for name in _DROPOUT if name in arguments}
    typed: dict[str, Any] = {"dtype": config.precision}
    tokenizer, report = None, None
    if config.bert is None:
        transformer = kind(**arguments, **typed)
        if warm is not None:
            arrays = encoder_arrays(warm.transformer)
            assign_arrays(transformer, arrays, lambda name: False)
            report = WarmStart(sorted(arrays), [], [], [])
    else:
        checkpoint = read_checkpoint(model_of(config.bert))
        tokenizer = tokenizer_of(checkpoint)
        bert = encoder_of(checkpoint, needs_pooler=False, **typed)
        fusion: dict[str, Any] = {"drop_net": config.drop_net, "train_bert": config.train_bert}
        fused = encoder_decoder_class(BERT_FUSED)
        transformer = fused(**arguments, bert=bert, **fusion, **typed)
        if warm is not None:
            report = transformer.warm_start_from(warm.transformer)
    typed |= {name: getattr(config, name) for name in _SETTINGS}
    return Built(Translator(transformer, *subwords, tokenizer, **typed), report)


def compile_translator(
    model: Translator, config: TranslationConfig, steps_per_epoch: int = 1
) -> None:
    """Compiles a translator with Adam and the schedule of Vaswani et al. 2017, section 5.3.

    A cool-down counts epochs of `steps_per_epoch` updates.
    """
    rate = InverseSquareRootDecay(
        config.warmup_steps,
        model.transformer.hidden_dim if config.learning_rate is None else None,
        config.learning_rate,
        total_steps=config.epochs * steps_per_epoch,
        cooldown_steps=config.cooldown_epochs * steps_per_epoch,
    )
    steps = config.accumulation_steps
    optimizer = AdamW(
        rate,
        config.weight_decay,
        beta_1=0.9,
        beta_2=0.98,
        epsilon=1e-9,
        global_clipnorm=config.clip,
        gradient_accumulation_steps=None if steps == 1 else steps,
    )
    model.compile(optimizer, steps_per_execution=config.steps_per_execution)


def model_arguments(config: TranslationConfig, subwords: tuple[Sized, Sized]) -> dict[str, Any]:
    """Returns the arguments of a new model, for the numbers of pieces of source and target.

    They are those options that the constructor of the architecture has. One that is given and that
    it has not is a ValueError, and so are two subword models that would share embeddings by `tied`.
    """
    source, target = subwords
    numbers = {name: getattr(config, name) for name in (*_NUMBERS, *ARCHITECTURE_OPTIONS)}
    is_joint = source is target
    tied = config.tied
    if tied == "auto":
        tied = "all" if is_joint else "target"
    if tied == "all" and not is_joint:
        raise ValueError(
            "`tied` must be target or none where source and target have subwords of their own. "
            "Received: tied='all'"
        )
    arguments = {
        "vocabulary_size": len(target),
        "source_vocabulary_size": None if is_joint else len(source),
        **transformer_size(config.size),
        **{name: value for name, value in numbers.items() if value is not None},
        **{name: getattr(config, name) for name in _CHOICES},
        "tied": tied,
    }
    taken = inspect.signature(_plain_class(config).__init__).parameters
    every = (*_NUMBERS, *_CHOICES, *ARCHITECTURE_OPTIONS, "tied")
    lacking = [name for name in every if name not in taken]
    check_default(config, lacking, f"with architecture={config.architecture}, which has none")
    return {name: value for name, value in arguments.items() if name in taken}


def _plain_class(config: TranslationConfig) -> Any:
    """Returns the class of a new model without BERT: a fused one is a Transformer, and a BERT."""
    return encoder_decoder_class(config.architecture if config.bert is None else TRANSFORMER)


_NAME = re.compile(r"epoch-(\d+)")
_WEIGHTS = "weights.safetensors"


class WeightsKeeper(keras.callbacks.Callback):
    """Keeps the weights of the `last` epochs, a folder each in `folder`, written atomically."""

    def __init__(self, folder: Path, last: int) -> None:
        super().__init__()
        if last < 1:
            raise ValueError(f"`last` must be at least 1. Received: last={last}")
        self._folder = folder
        self._last = last

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Writes the weights, and removes those no longer needed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        arrays = {
            name: np.asarray(variable)
            for name, variable in named_weights(self.model).items()
            if variable.trainable
        }
        # The epoch may exist: a resumed run repeats what came after its last state.
        target = self._folder / f"epoch-{epoch + 1:05d}"
        with atomic_directory(target, overwrite=True) as partial:
            write_safetensors(partial / _WEIGHTS, arrays, format="kbert")
        for old in kept_weights(self._folder)[: -self._last]:
            shutil.rmtree(old)


def kept_weights(folder: Path) -> list[Path]:
    """Returns the folders of a `WeightsKeeper`, the oldest epoch first."""
    entries = folder.iterdir() if folder.is_dir() else ()
    return sorted(entry for entry in entries if _NAME.fullmatch(entry.name))


def remove_weights_after(folder: Path, epoch: int) -> None:
    """Removes the weights of epochs after the last state, left by a killed process."""
    for kept in kept_weights(folder):
        if int(kept.name.rpartition("-")[2]) > epoch:
            shutil.rmtree(kept)


def average_weights(model: Any, epochs: Sequence[Path]) -> None:
    """Assigns the mean of several epochs' weights to a model; frozen weights stay."""
    if not epochs:
        raise ValueError("`epochs` must be at least one. Received: none")
    variables = {n: v for n, v in named_weights(model).items() if v.trainable}
    sums = {name: np.zeros(variable.shape, "float64") for name, variable in variables.items()}
    for epoch in epochs:
        arrays = load_file(epoch / _WEIGHTS)
        if {n: a.shape for n, a in arrays.items()} != {n: a.shape for n, a in sums.items()}:
            raise ValueError(f"`epochs` must be of this model. Received: {epoch}, of another")
        for name, array in arrays.items():
            sums[name] += array
    for name, variable in variables.items():
        variable.assign((sums[name] / len(epochs)).astype(variable.dtype))
