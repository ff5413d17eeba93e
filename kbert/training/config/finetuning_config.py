"""`RunConfig`: all options of a fine-tuning run, their defaults and contradictions."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbert.layers.adapters.configs import TARGETS
from kbert.metrics.glue_names import glue_task_name
from kbert.models.feature_names import READERS
from kbert.models.sizes import BERT_SIZES
from kbert.options.configuration import (
    RUN,
    TPU,
    TRAINING,
    EpochOptions,
    OptimizerOptions,
    PlacementOptions,
    RunOptions,
    check_default,
    wrong,
)
from kbert.options.kinds import choice, flag, grid, number, option, rate, text, whole
from kbert.tasks.embedding.options import EmbeddingOptions
from kbert.tasks.finetuned_task import TFDS, FinetunedTask
from kbert.tasks.multi_label.options import MultiLabelOptions
from kbert.tasks.ner.options import EntityOptions
from kbert.tasks.options import TaskOptions
from kbert.tasks.question_answering.options import QuestionOptions
from kbert.tasks.registry import FINETUNED, finetuned_task, finetuned_tasks
from kbert.tasks.span_tagging.options import SpanOptions

TASKS = FINETUNED
SCRATCH = "scratch:"
# Peaks of the learning rate: Pfeiffer et al. 2021, section 4.1; Hu et al. 2021, table 9.
_ADAPTER_RATES = {"houlsby": 1e-4, "pfeiffer": 1e-4, "lora": 5e-4}
GRID_KEYS = ("batch_size", "learning_rate", "epochs")
_DATA, _MODEL = "Data", "Model"
_PART = text("a file, tfds:NAME, hf:NAME, or a split of the GLUE task")


@dataclass(frozen=True)
class RunConfig(
    EmbeddingOptions,
    MultiLabelOptions,
    EntityOptions,
    QuestionOptions,
    SpanOptions,
    TaskOptions,
    EpochOptions,
    OptimizerOptions,
    PlacementOptions,
    RunOptions,
):
    """The configuration of a run that trains an encoder with a task's head.

    The metadata of each field holds its type and bounds (`kind`) and its description (`help`); the
    command line and the error messages use these. `docs/training.md` lists them all. Translation
    has other data and another model: see `kbert.training.config.translation_config`.
    """

    needed = ("train|glue", "encoder", "output")

    task: str = option(FINETUNED[0], choice(*TASKS), _DATA, "What is learned.")
    train: str | None = option(
        None, _PART, _DATA,
        "Training examples: TSV, CSV, JSON Lines or JSON (also .gz), SQuAD's JSON or CoNLL columns "
        "for the tasks that read, tfds:glue/sst2@train or hf:NAME:CONFIGURATION@SPLIT; with --glue "
        "the name of a split, by default train.",
    )
    validation: str | None = option(
        None, _PART, _DATA,
        "Validation examples, to be measured after each epoch; with --glue by default dev.",
    )
    test: str | None = option(
        None, _PART, _DATA, "Labelled test examples, to be measured once, at the end."
    )
    glue: str | None = option(
        None, text("a task of GLUE"), _DATA,
        "A GLUE task: cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte or wnli.",
    )
    data: str | None = option(
        None, text("a folder"), _DATA, "Folder of GLUE in its official layout, or of prepared TFDS."
    )
    encoder: str | None = option(
        None, text("a name, a folder, scratch:SIZE or scratch:NAME"), _MODEL,
        "The encoder to fine-tune: a published name, a folder in any known format; scratch:tiny "
        "for random weights of a size, or scratch:NAME for those of an encoder as that is.",
    )
    vocabulary: str | None = option(
        None, text("a vocabulary file"), _MODEL,
        "A vocab.txt, or a vocab.json beside its merges.txt; needed for scratch:SIZE.",
    )
    lowercase: bool = option(
        True, flag(), _MODEL, "With a vocabulary: whether text is lower-cased."
    )
    encoder_dropout: float | None = option(
        None, rate(optional=True), _MODEL,
        "Dropout rates within the encoder; by default those it has.",
    )
    max_sequence_length: int | None = option(
        None, whole(3, optional=True), _MODEL,
        "Longest input in tokens, by default 128, of embedding 256; the rest is cut off. Of tasks "
        "that read: of one window, by default 384 with questions, and nothing is cut off.",
    )
    epochs: int = option(3, whole(1), TRAINING, "Passes over the training examples.")
    batch_size: int = option(32, whole(1), TRAINING, "Examples a step.")
    batch_tokens: int | None = option(
        None, whole(1, optional=True), TRAINING, "Tokens a step, padding included, instead."
    )
    learning_rate: float | None = option(
        None, number("a number above 0", lambda v: v > 0, optional=True), TRAINING,
        "Peak of the learning rate, by default 5e-5; with features 1e-3, with an adapter 1e-4, "
        "with lora 5e-4.",
    )
    warmup_fraction: float = option(
        0.1, number("a number in [0, 1]", lambda v: 0 <= v <= 1), TRAINING,
        "Share of the steps in which the rate rises; then it falls to 0.",
    )
    monitor: str | None = option(
        None, text("a metric"), TRAINING,
        "The validation metric that the best epoch is chosen by; by default the task's first.",
    )
    gradient_checkpointing: bool = option(
        False, flag(), TRAINING, "Less memory for about a third more time; the same gradients."
    )
    grid: bool | dict[str, list[Any]] = option(
        False, grid(GRID_KEYS), RUN, "Try batch 16, 32; rate 5e-5, 3e-5, 2e-5; epochs 3, 4."
    )

    def check_together(self) -> None:
        """Checks the values against each other."""
        _check_model(self)
        _check_data(self)
        _check_choices(self)
        super().check_together()

    @property
    def peak_rate(self) -> float:
        """The peak of the learning rate."""
        if self.learning_rate is not None:
            return self.learning_rate
        if self.features is not None:
            return 1e-3
        return 5e-5 if self.adapter is None else _ADAPTER_RATES[self.adapter]

    @property
    def fused_names(self) -> dict[str, str]:
        """The adapters of a fusion: name -> run or folder."""
        return {Path(folder).name.replace("+", "-"): folder for folder in self.fuse or ()}

    @property
    def adapter_settings(self) -> dict[str, Any] | None:
        """The settings of the adapter that is trained, for `adapter_config`; None for none."""
        if self.adapter is None:
            return None
        found: dict[str, Any] = {"kind": self.adapter, "adapter_dim": self.adapter_dim}
        found |= {"rank": self.lora_rank, "alpha": self.lora_alpha or self.lora_rank}
        found["targets"] = self.lora_targets
        return {key: value for key, value in found.items() if value is not None}

    @property
    def is_scratch(self) -> bool:
        """Is true where the encoder begins with random weights."""
        return (self.encoder or "").startswith(SCRATCH)

    @property
    def encoder_name(self) -> str:
        """The encoder's name, folder or size, without `scratch:`."""
        return (self.encoder or "").removeprefix(SCRATCH)

    @property
    def scratch_size(self) -> str | None:
        """The size after `scratch:`; None where a checkpoint or an encoder's name stands."""
        return self.encoder_name if self.is_scratch and self.vocabulary is not None else None


def options_of_others(task: str) -> set[str]:
    """Returns the options that a task has no use for: those that others have, or that say so."""
    others = tuple(f"Of {other}:" for other in TASKS if other != task)
    told = (one.name for one in RunConfig.options() if one.metadata["help"].startswith(others))
    return {*told, *_refused(task)}


def _refused(task: str) -> dict[str, None]:
    own = _keys(finetuned_task(task))
    every = (key for one in finetuned_tasks() for key in _keys(one))
    return dict.fromkeys(key for key in every if key not in own)


def _keys(task: FinetunedTask) -> tuple[str, ...]:
    return (*task.columns, *task.options, *task.settings)


def _check_model(config: RunConfig) -> None:
    if config.encoder is None:
        raise wrong("encoder", "given: a name, a folder, or scratch:SIZE", None)
    size = config.scratch_size
    if size is not None and size not in BERT_SIZES:
        sizes = ", ".join(BERT_SIZES)
        raise wrong("encoder", f"scratch: and one of {sizes} with vocabulary", config.encoder)
    if config.is_scratch and config.encoder_name in BERT_SIZES and size is None:
        raise wrong("vocabulary", f"given with encoder={config.encoder!r}", None)
    if config.is_scratch:
        check_default(config, ("features", "adapter", "fuse"), "with an encoder of random weights")
    if config.vocabulary is None:
        check_default(config, ("lowercase",), "without vocabulary")
    _check_features(config)
    _check_adapter(config)


def _check_adapter(config: RunConfig) -> None:
    of_lora = ("lora_rank", "lora_alpha", "lora_targets")
    if config.fuse is not None:
        if len(config.fused_names) < len(config.fuse):
            raise wrong("fuse", "folders of different names", ", ".join(config.fuse))
        check_default(config, ("adapter", "features", "vocabulary"), "with fuse")
    if config.adapter is None:
        check_default(config, ("adapter_dim", *of_lora), "without adapter")
        return
    where = f"with adapter={config.adapter}"
    check_default(config, ("adapter_dim",) if config.adapter == "lora" else of_lora, where)
    unknown = [name for name in config.lora_targets or () if name not in TARGETS]
    if unknown:
        raise wrong("lora_targets", f"some of {', '.join(TARGETS)}", ", ".join(unknown))
    if config.vocabulary is not None:
        raise wrong("vocabulary", f"left out {where}: in a trained encoder", config.vocabulary)


def _check_features(config: RunConfig) -> None:
    if config.features is None:
        if config.head in READERS:
            raise wrong("features", f"given with head={config.head}", None)
        check_default(config, ("lstm_dim", "feature_cache"), "without features")
        if "head" not in finetuned_task(config.task).settings:
            check_default(config, ("head",), f"with task={config.task!r} without features")
        return
    if config.head == "two_layer":
        raise wrong("head", f"{' or '.join(READERS)} with features", config.head)
    if config.lstm_dim is not None and config.head != "bilstm":
        raise wrong("lstm_dim", "left out without head=bilstm", config.lstm_dim)
    if config.vocabulary is not None:
        raise wrong("vocabulary", "left out with features, those of a trained encoder",
                    config.vocabulary)
    of_training = ("adapter", "encoder_dropout", "gradient_checkpointing")
    check_default(config, of_training, "with features, whose encoder does not train")


def _check_data(config: RunConfig) -> None:
    if config.glue is not None:
        name = glue_task_name(config.glue)
        expected = next(task.name for task in finetuned_tasks() if task.is_of_glue(name))
        if config.task != expected:
            raise wrong("task", f"{expected} with glue={config.glue!r}", config.task)
        if config.data is None:
            raise wrong("data", f"the folder of GLUE with glue={config.glue!r}", None)
    elif config.train is None:
        raise wrong("train", "given: a file, tfds:NAME or hf:NAME (or give glue and data)", None)
    elif TFDS not in f"{config.train} {config.validation} {config.test}":
        check_default(config, ("data",), f"without glue and {TFDS}NAME")
    finetuned_task(config.task).check(config)


def _check_choices(config: RunConfig) -> None:
    check_default(config, _refused(config.task), f"with task={config.task!r}")
    for key, given in (("grid", config.grid), ("strategy", config.strategy == TPU)):
        if given and config.batch_tokens is not None:
            raise wrong(
                "batch_tokens", f"left out with {key}={getattr(config, key)}", config.batch_tokens
            )
    if config.glue is None and config.validation is None:
        for key in ("early_stopping", "monitor", "grid"):
            if getattr(config, key) not in (None, False):
                raise wrong(key, "left out where there is no validation", getattr(config, key))
