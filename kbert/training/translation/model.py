"""The translator of a run: new or warm-started, and optionally fused with BERT."""

from collections.abc import Sized
from dataclasses import dataclass
from typing import Any

from kbert.architectures import BERT_FUSED, TRANSFORMER, encoder_decoder_class
from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.models.bert_fused_transformer import WarmStart
from kbert.models.encoder import Encoder
from kbert.models.encoder_arrays import assign_arrays, encoder_arrays
from kbert.models.encoder_model import encoder_of
from kbert.models.sizes import transformer_size
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import InverseSquareRootDecay
from kbert.pipelines.base.saved_pipeline import tokenizer_of
from kbert.tasks.translation.model import Translator
from kbert.text.subword import Subword
from kbert.text.wordpiece.wordpiece import WordPiece
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.runs.load_model import load_model
from kbert.training.runs.run_directory import model_of

_NUMBERS = (
    *("num_encoder_layers", "num_decoder_layers", "hidden_dim", "num_heads"),
    "intermediate_dim",
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
    """A translator before its training.

    Attributes:
        model: The translator, not compiled.
        warm_start: Report of the restored weights; None where all are new.
    """

    model: Translator
    warm_start: WarmStart | None


def load_warm_start(config: TranslationConfig) -> Translator | None:
    """Loads the translator of a run's warm start, or returns None.

    Raises:
        ValueError: It is not a translator, or one with a BERT.
        FileNotFoundError: There is no such run or model, or the run is not finished.
    """
    if config.warm_start is None:
        return None
    model = load_model(config.warm_start)
    if not isinstance(model, Translator) or model.bert_tokenizer is not None:
        received = "one with a BERT" if isinstance(model, Translator) else type(model).__name__
        raise ValueError(
            f"`warm_start` must be a translator without BERT. Received: {config.warm_start}, "
            f"{received}"
        )
    return model


def build_translator(
    config: TranslationConfig, subwords: tuple[Subword, Subword], warm: Translator | None = None
) -> Built:
    """Creates the model of a run.

    Args:
        subwords: Those of source and target, one object if they are one model; with `warm` its own.

    Raises:
        ValueError: Sizes do not fit each other, or weights would not be restored.
        FileNotFoundError: There is no such BERT.
        OSError: It cannot be fetched.
    """
    if warm is None:
        arguments = transformer_arguments(config, subwords)
    else:
        arguments = _arguments_of(warm, config)
    typed: dict[str, Any] = {"dtype": config.precision}
    tokenizer, report = None, None
    if config.bert is None:
        transformer = encoder_decoder_class(TRANSFORMER)(**arguments, **typed)
        if warm is not None:
            arrays = encoder_arrays(warm.transformer)
            assign_arrays(transformer, arrays, lambda name: False)
            report = WarmStart(sorted(arrays), [], [], [])
    else:
        bert, tokenizer = _load_bert(config.bert, config.precision)
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

    Args:
        steps_per_epoch: Updates per epoch, the unit of a cool-down.
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


def transformer_arguments(
    config: TranslationConfig, subwords: tuple[Sized, Sized]
) -> dict[str, Any]:
    """Returns the arguments of a new Transformer.

    Args:
        subwords: Those of source and target, one object if they are one model; only their numbers
            of pieces are used.

    Raises:
        ValueError: They cannot share the embeddings of `tied`.
    """
    source, target = subwords
    numbers = {name: getattr(config, name) for name in _NUMBERS}
    is_joint = source is target
    tied = config.tied
    if tied == "auto":
        tied = "all" if is_joint else "target"
    if tied == "all" and not is_joint:
        raise ValueError(
            "`tied` must be target or none where source and target have subwords of their own. "
            "Received: tied='all'"
        )
    return {
        "vocabulary_size": len(target),
        "source_vocabulary_size": None if is_joint else len(source),
        **transformer_size(config.size),
        **{name: value for name, value in numbers.items() if value is not None},
        **{name: getattr(config, name) for name in _CHOICES},
        "tied": tied,
    }


def _arguments_of(warm: Translator, config: TranslationConfig) -> dict[str, Any]:
    """Returns the arguments of a warm start's Transformer, with the run's dropout rates."""
    saved = warm.transformer.get_config()
    kept = {name: value for name, value in saved.items() if name not in _NOT_ARGUMENTS}
    return {**kept, **{name: getattr(config, name) for name in _DROPOUT}}


def _load_bert(name: str, dtype: str) -> tuple[Encoder, WordPiece]:
    """Loads an encoder, or that of a run, with its tokenizer."""
    checkpoint = read_checkpoint(model_of(name))
    encoder = encoder_of(checkpoint, needs_pooler=False, dtype=dtype)
    return encoder, tokenizer_of(checkpoint)
