"""The model of a pretraining run: new, or continued from an encoder."""

from typing import Any

from kbert.models.bert import Bert
from kbert.models.sizes import bert_size
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.tasks.pretraining.model import MaskedLanguageModel
from kbert.tasks.pretraining.objectives import is_causal
from kbert.text.wordpiece.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.runs.run_directory import is_run, load_run

_SIZES = ("num_layers", "hidden_dim", "num_heads", "intermediate_dim")
_OF_TRAINING = ("attention_dropout", "gradient_checkpointing")
_STRIDE = 32


def build_pretrained(
    config: PretrainingConfig, vocabulary: Vocabulary | None
) -> MaskedLanguageModel:
    """Creates the model of a run; heads that an encoder lacks are new, and a warning names them.

    Args:
        config: The run's configuration.
        vocabulary: The vocabulary of a new model; None continues the configuration's encoder.

    Raises:
        ValueError: Sizes or vocabulary do not fit each other, or the encoder is not one.
        FileNotFoundError: There is no such encoder.
        OSError: A published encoder cannot be fetched.
    """
    length = config.max_sequence_length
    typed: dict[str, Any] = {
        "dtype": config.precision,
        "objective": config.objective,
        "max_sequence_length": length,
        "stride": min(_STRIDE, length // 4),
    }
    encoder: dict[str, Any] = {name: getattr(config, name) for name in _OF_TRAINING}
    encoder["causal"] = is_causal(config.objective)
    if vocabulary is None:
        name = config.encoder or ""
        source = load_run(name).model_directory if is_run(name) else name
        encoder["encoder_dropout"] = config.dropout
        return MaskedLanguageModel.from_pretrained(source, from_other_task=True, **encoder, **typed)
    given = {name: getattr(config, name) for name in _SIZES}
    sizes = {**bert_size(config.size), **{k: v for k, v in given.items() if v is not None}}
    new = Bert(
        vocabulary_size=len(vocabulary),
        max_sequence_length=config.positions,
        dropout=config.dropout,
        dtype=config.precision,
        **sizes,
        **encoder,
    )
    tokenizer = WordPiece(vocabulary, config.lowercase, special_tokens_in_text=True)
    return MaskedLanguageModel(new, tokenizer, **typed)


def compile_pretrained(model: MaskedLanguageModel, config: PretrainingConfig) -> None:
    """Compiles a model with the optimizer of Devlin et al. 2019, appendix A.2.

    Args:
        model: From `build_pretrained`.
        config: The run's configuration.
    """
    rate = WarmupLinearDecay(config.learning_rate, config.steps, config.warmup)
    optimizer = AdamW(rate, config.weight_decay, epsilon=1e-6, global_clipnorm=config.clip)
    model.compile(optimizer, steps_per_execution=config.steps_per_execution)
