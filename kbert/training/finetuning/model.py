"""The model of a fine-tuning run: an encoder, pretrained or from scratch, and a new head."""

from typing import Any

from kbert.models.bert import Bert
from kbert.optimization.adamw import AdamW
from kbert.optimization.losses import SoftmaxCrossEntropy
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.tasks.registry import finetuned_task
from kbert.text.wordpiece.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.finetuning.examples import RunData


def build_model(config: RunConfig, data: RunData) -> Any:
    """Creates the model of a run, with new weights where the encoder has none.

    Args:
        config: The run's configuration.
        data: The run's examples, which determine the labels, and whether inputs are pairs.

    Returns:
        A model of the task's class, not compiled.

    Raises:
        ValueError: Vocabulary, length or labels do not fit the encoder, or it is not an encoder.
        FileNotFoundError: There is no such encoder or vocabulary.
        OSError: The encoder cannot be fetched.
    """
    task = finetuned_task(config.task)
    pipeline = task.model_class()
    names = ("max_sequence_length", *task.settings)
    chosen = {name: getattr(config, name) for name in names}
    settings = {name: value for name, value in chosen.items() if value is not None}
    settings["dtype"] = config.precision
    settings |= task.model_settings(config, data.train)
    if data.labels is not None:
        settings["labels"] = data.labels
    encoder_settings = _encoder_settings(config)
    if config.vocabulary is None:
        if "dropout" in encoder_settings:  # a task's own dropout has that name here
            encoder_settings["encoder_dropout"] = encoder_settings.pop("dropout")
        if config.adapter_dim is not None:
            encoder_settings["adapter_dim"] = config.adapter_dim
        model = pipeline.from_pretrained(
            config.encoder, from_other_task=True, **encoder_settings, **settings
        )
        task.reset(model)
        return model
    if config.adapter_dim is not None:
        raise ValueError(
            "`adapter_dim` must come with a published encoder, which brings its own vocabulary. "
            f"Received: adapter_dim={config.adapter_dim}, vocabulary={config.vocabulary!r}"
        )
    vocabulary = Vocabulary.from_file(config.vocabulary)
    tokenizer = WordPiece(vocabulary, lowercase=config.lowercase)
    encoder_settings["dtype"] = config.precision
    if config.scratch_size is None:
        encoder = Bert.from_pretrained(config.encoder or "", **encoder_settings)
    else:
        encoder = Bert.from_size(config.scratch_size, len(vocabulary), **encoder_settings)
    return pipeline(encoder, tokenizer, **settings)


def _encoder_settings(config: RunConfig) -> dict[str, Any]:
    """Returns the encoder's options by the names of `Bert`'s constructor arguments."""
    rates = {}
    if config.encoder_dropout is not None:
        rates = dict.fromkeys(("dropout", "attention_dropout"), config.encoder_dropout)
    return {"gradient_checkpointing": config.gradient_checkpointing, **rates}


def compile_model(model: Any, config: RunConfig, data: RunData, total_steps: int) -> None:
    """Compiles a model with AdamW, linear warm-up and decay, and the task's loss.

    Args:
        model: From `build_model`.
        config: The run's configuration.
        data: The run's examples.
        total_steps: Steps of the whole training.
    """
    schedule = WarmupLinearDecay(
        config.learning_rate, total_steps, int(config.warmup_fraction * total_steps)
    )
    optimizer = AdamW(schedule, config.weight_decay, global_clipnorm=config.clip)
    weights = finetuned_task(config.task).class_weights(config, data.train, data.labels)
    loss = None if weights is None else SoftmaxCrossEntropy(list(weights.values()))
    steps = config.steps_per_execution
    model.compile(optimizer=optimizer, loss=loss, steps_per_execution=steps)
