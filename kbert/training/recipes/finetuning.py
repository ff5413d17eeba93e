"""Fine-tuning: a task's new head on an encoder, trained on labelled examples."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kbert.architectures import BERT, encoder_class
from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.metrics.glue_names import GLUE_METRICS
from kbert.models.encoder_model import encoder_of
from kbert.optimization.adamw import AdamW
from kbert.optimization.losses import SoftmaxCrossEntropy
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.tasks.registry import finetuned_task
from kbert.text.wordpiece.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece
from kbert.training.callbacks.epoch_record import EpochRecord
from kbert.training.callbacks.state_saver import pieces_of
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.finetuning.examples import RunData, read_run_data, report_lines, start_report
from kbert.training.recipes.recipe import EpochRecipe, run_recipe
from kbert.training.resume.resumed_run import changed_data
from kbert.training.resume.train_state import order_of, sha256_of_arrays
from kbert.training.runs.run_directory import CHECKPOINTS
from kbert.training.runs.run_log import tell_stage

# With the examples they determine the next batch; a TPU also drops a smaller last one.
_OF_THE_ORDER = ("batch_size", "batch_tokens", "seed")


def train_once(config: RunConfig, data: RunData | None = None) -> Path:
    """Fine-tunes with one seed, whatever `seeds` and `grid` are; see `run_recipe`."""
    return run_recipe(Finetuning(config, data))


class Finetuning(EpochRecipe):
    """The recipe of a run on labelled examples."""

    config: RunConfig
    data: RunData | None
    read = staticmethod(read_run_data)
    _parts: dict[str, Any]
    _monitor: str
    _steps: list[int]

    def prepare(self, kept: Path | None) -> None:
        config, log = self.config, self.log
        data = read_run_data(config) if self.data is None else self.data
        self.glue = data.glue
        task = finetuned_task(config.task)
        self._monitor = monitored_metric(config, data)
        # Its errors must come before the encoder is loaded.
        task.class_weights(config, data.train, data.labels)
        tell_stage(f"loading the encoder {config.encoder or ''}".rstrip())
        self.model = build_model(config, data)
        tell_stage("tokenizing")
        parts = {name: task.prepare(self.model, of, data.glue) for name, of in data.parts.items()}
        parts["train"] = parts["train"].trained(config)
        self._parts = parts
        inputs = {name: part.input for name, part in parts.items()}
        packed = inputs["train"].packed
        sha256 = sha256_of_arrays(packed.token_ids, packed.lengths, parts["train"].right)
        hashes = {**data.hashes, "data_sha256": sha256}
        if kept is not None:
            changed_data(kept, hashes, config.allow_config_change)
        options = [getattr(config, key) for key in _OF_THE_ORDER]
        self.order = order_of(sha256, config.strategy == "tpu", *options)
        self._steps = inputs["train"].steps(config)
        compile_model(self.model, config, data, sum(self._steps))
        report = start_report(config, data, self.model, inputs, self._steps)
        self.report = report | {**hashes, "warnings": list(log.warnings)}
        log.line(report_lines(self.report))

    def new_record(self, folder: Path) -> EpochRecord:
        validation = self._parts["validation"].validating if "validation" in self._parts else None
        tokens = int(self._parts["train"].input.lengths.sum())
        kept = folder / CHECKPOINTS
        return EpochRecord(self.config, validation, self._monitor, tokens, kept, self.log)

    def batches(self, epoch: int, batch: int) -> Any:
        train = self._parts["train"]
        return train.input.dataset(self.model, self.config, train.right, epoch, batch)

    def batch_counts(self) -> Sequence[int] | None:
        return None if self.config.batch_tokens is None else self._steps

    def pieces(self) -> Mapping[str, Any]:
        return {"token_ids": pieces_of(self.model.tokenizer.vocabulary.tokens)}

    def measured(self, folder: Path) -> dict[str, Any]:
        model = type(self.model).from_pretrained(folder, dtype=self.config.precision)
        held_out = [part for part in ("validation", "test") if part in self._parts]
        return {part: self._parts[part].measured(model) for part in held_out}


def monitored_metric(config: RunConfig, data: RunData) -> str:
    """Returns the metric that the epochs of a run are compared by.

    Raises:
        ValueError: The task has no such metric.
    """
    known = finetuned_task(config.task).monitors(data.labels)
    if config.monitor is None:
        return GLUE_METRICS[data.glue][0] if data.glue is not None else known[0]
    if config.monitor not in known:
        raise ValueError(
            f"`monitor` must be one of {', '.join(known)}. Received: monitor={config.monitor!r}"
        )
    return config.monitor


def build_model(config: RunConfig, data: RunData) -> Any:
    """Creates the model of a run, with new weights where the encoder has none.

    Args:
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
        encoder = encoder_of(read_checkpoint(config.encoder or ""), **encoder_settings)
    else:
        new = encoder_class(BERT).from_size
        encoder = new(config.scratch_size, len(vocabulary), **encoder_settings)
    return pipeline(encoder, tokenizer, **settings)


def _encoder_settings(config: RunConfig) -> dict[str, Any]:
    """Returns the encoder's options by the names of its constructor arguments."""
    rates = {}
    if config.encoder_dropout is not None:
        rates = dict.fromkeys(("dropout", "attention_dropout"), config.encoder_dropout)
    return {"gradient_checkpointing": config.gradient_checkpointing, **rates}


def compile_model(model: Any, config: RunConfig, data: RunData, total_steps: int) -> None:
    """Compiles a model with AdamW, linear warm-up and decay, and the task's loss."""
    schedule = WarmupLinearDecay(
        config.learning_rate, total_steps, int(config.warmup_fraction * total_steps)
    )
    optimizer = AdamW(schedule, config.weight_decay, global_clipnorm=config.clip)
    weights = finetuned_task(config.task).class_weights(config, data.train, data.labels)
    loss = None if weights is None else SoftmaxCrossEntropy(list(weights.values()))
    steps = config.steps_per_execution
    model.compile(optimizer=optimizer, loss=loss, steps_per_execution=steps)
