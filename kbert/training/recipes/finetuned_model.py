"""The model of a fine-tuning run: a task's head on the encoder that the options ask for."""

from collections.abc import Mapping
from typing import Any

from kbert.architectures import BERT, ROBERTA, encoder_class
from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.models.encoder import encoder_of, new_encoder
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.pipelines.tokenizers import tokenizer_of, tokenizer_of_file
from kbert.tasks.registry import finetuned_task
from kbert.training.config.finetuning_config import RunConfig


def build_model(config: RunConfig, data: Any) -> Any:
    """Creates the model of a run, not compiled, with new weights where the encoder has none."""
    task = finetuned_task(config.task)
    pipeline, settings = task.model_class(), head_settings(config, data)
    encoder_settings = _encoder_settings(config)
    if config.vocabulary is None and config.is_scratch:
        checkpoint = read_checkpoint(config.encoder_name, values=False)
        encoder = new_encoder(checkpoint, dtype=config.precision, **encoder_settings)
        return pipeline(encoder, tokenizer_of(checkpoint, **pipeline.tokenizer_rules), **settings)
    if config.vocabulary is None:
        if "dropout" in encoder_settings:  # a task's own dropout has that name here
            encoder_settings["encoder_dropout"] = encoder_settings.pop("dropout")
        if config.adapter is not None:
            encoder_settings["adapter"] = config.adapter_settings
        encoder_settings |= _reader_settings(config)
        model = pipeline.from_pretrained(
            config.encoder, from_other_task=True, **encoder_settings, **settings
        )
        task.reset(model)
        if config.fuse is not None:
            fuse(model.encoder, config.fused_names)
        return model
    tokenizer = tokenizer_of_file(config.vocabulary, config.lowercase)
    encoder_settings["dtype"] = config.precision
    if config.scratch_size is None:
        encoder = encoder_of(read_checkpoint(config.encoder or ""), **encoder_settings)
    else:
        architecture = ROBERTA if tokenizer.vocabulary.special_tokens.byte_level else BERT
        new = encoder_class(architecture).from_size
        encoder = new(config.scratch_size, len(tokenizer.vocabulary), **encoder_settings)
    return pipeline(encoder, tokenizer, **settings)


def head_settings(config: RunConfig, data: Any) -> dict[str, Any]:
    """Returns arguments of the constructor of a run's model, but for encoder and tokenizer."""
    task = finetuned_task(config.task)
    chosen = {key: getattr(config, key) for key in ("max_sequence_length", *task.settings)}
    # An encoder that was published with another head than the default has that.
    default = {field.name: field.default for field in config.options()}["head"]
    if config.features is not None:  # the head is that of the features
        chosen["head"] = default
    settings = {k: v for k, v in chosen.items() if v is not None and (k, v) != ("head", default)}
    settings |= {"dtype": config.precision, **task.model_settings(config, data.train)}
    if data.labels is not None:
        settings["labels"] = data.labels
    return settings


def model_on(encoder: Any, tokenizer: Any, config: RunConfig, data: Any) -> Any:
    """Creates the model of a run with a new head on an encoder that is there, not compiled."""
    kind = finetuned_task(config.task).model_class()
    lengths = kind.batching_type.default_lengths(kind, encoder.max_sequence_length)
    return kind(encoder, tokenizer, **{**lengths, **head_settings(config, data)})


def loss_of(config: RunConfig, data: Any) -> Any:
    """Returns the loss that the options of a run ask for; None for the model's own."""
    task = finetuned_task(config.task)
    weights = task.class_weights(config, data.train, data.labels)
    return task.loss(config, data.train) if weights is None else task.weighted_loss(weights)


def fuse(encoder: Any, folders: Mapping[str, str]) -> None:
    """Adds the adapters of runs or folders, by their names, and a fusion of them that trains.

    Raises:
        ValueError: a folder has no adapter for this encoder, or of another encoder's weights.
    """
    for name, folder in folders.items():
        try:
            encoder.load_adapter(folder, name)
        except ValueError as error:
            raise ValueError(f"`fuse`: {error}") from error
    encoder.add_adapter_fusion(list(folders))
    encoder.train_adapter(list(folders))


def _reader_settings(config: RunConfig) -> dict[str, Any]:
    """Returns the options of features by the names of `FeatureBasedEncoder`'s arguments."""
    if config.features is None:
        return {}
    reader = "bilstm" if config.head == "bilstm" else "linear"
    return {"features": config.features, "reader": reader, "reader_dim": config.lstm_dim}


def _encoder_settings(config: RunConfig) -> dict[str, Any]:
    """Returns the encoder's options by the names of its constructor arguments."""
    rates = {}
    if config.encoder_dropout is not None:
        rates = dict.fromkeys(("dropout", "attention_dropout"), config.encoder_dropout)
    return {"gradient_checkpointing": config.gradient_checkpointing, **rates}


def optimizer_of(config: Any, peak_rate: float, total_steps: int) -> AdamW:
    """Returns AdamW with linear warm-up and decay, as the options of a run ask for it."""
    warmup = int(config.warmup_fraction * total_steps)
    schedule = WarmupLinearDecay(peak_rate, total_steps, warmup)
    return AdamW(schedule, config.weight_decay, global_clipnorm=config.clip)


def compile_model(model: Any, config: RunConfig, data: Any, total_steps: int) -> None:
    """Compiles a model with AdamW, linear warm-up and decay, and the task's loss."""
    optimizer = optimizer_of(config, config.peak_rate, total_steps)
    loss = loss_of(config, data)
    model.compile(optimizer, loss, steps_per_execution=config.steps_per_execution)
