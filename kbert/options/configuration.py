"""Base class of the configurations of all kinds of runs, and mixins of options that they share."""

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from kbert.hints import nearest
from kbert.options.kinds import choice, flag, kind_of, number, option, read_config_file, text, whole

ONE, MIRRORED, MULTI_WORKER, TPU = "one", "mirrored", "multi-worker", "tpu"
STRATEGIES = (ONE, MIRRORED, MULTI_WORKER, TPU)
EXAMPLES, TRAINING, RUN = "Examples", "Training", "Run"


@dataclasses.dataclass(frozen=True)
class Configuration:
    """Base class of frozen dataclasses with fields of `kbert.options.kinds.option`.

    A value of the wrong type or out of bounds, and values that contradict each other, raise a
    ValueError that names key, expectation and value.

    Attributes:
        needed: Keys that users must give, each with `|` between it and those that do instead.
    """

    needed: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Checks each value by itself, then the values against each other."""
        for field in self.options():
            value = getattr(self, field.name)
            if isinstance(value, dict):
                # Labels such as 0, 1 and true are not text in YAML, but in the data.
                value = {_label(key): one for key, one in value.items()}
                object.__setattr__(self, field.name, value)
            kind_of(field).check(field.name, value)
        self.check_together()

    def check_together(self) -> None:
        """Raises a ValueError if values contradict each other; each has been checked by itself."""

    @classmethod
    def options(cls) -> "list[dataclasses.Field[Any]]":
        """Returns the fields by panel; in each, those of the class itself before inherited ones."""
        every = dataclasses.fields(cls)
        own = [field for field in every if field.name in cls.__annotations__]
        fields = [*own, *(field for field in every if field not in own)]
        panels = list(dict.fromkeys(field.metadata.get("panel") for field in fields))
        return sorted(fields, key=lambda field: panels.index(field.metadata.get("panel")))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str = "The configuration") -> Self:
        """Creates a configuration from the values that differ from the defaults.

        A key that is unknown raises a ValueError, whose message begins with `source` and names the
        nearest one; a wrong value one that names its key.
        """
        known = [field.name for field in cls.options()]
        for key in values:
            if key not in known:
                near = nearest(key.replace("-", "_"), known)
                keys = "an option" if near else f"one of {', '.join(known)}"
                raise ValueError(f"{source}: the key must be {keys}. Received: {key!r}.{near}")
        return cls(**values)

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str], **overrides: Any) -> Self:
        """Creates a configuration from a YAML file, whose values give way to the `overrides`.

        Raises a ValueError as `from_dict` does, and if the file is not a YAML mapping.
        """
        values = read_config_file(path)
        try:
            return cls.from_dict({**values, **overrides}, os.fspath(path))
        except ValueError as error:
            key = re.match(r"`(\w+)` must ", str(error))
            if key and key[1] in values.keys() - overrides.keys():
                raise ValueError(f"{os.fspath(path)}: {error}") from error
            raise

    def to_dict(self) -> dict[str, Any]:
        """Returns all keys and values, for `from_dict`."""
        values = dataclasses.asdict(self)
        return {field.name: values[field.name] for field in self.options()}

    def with_values(self, **values: Any) -> Self:
        """Returns a copy of the configuration with some values changed."""
        return type(self).from_dict({**self.to_dict(), **values})


def _label(key: Any) -> Any:
    """Returns a key as the label that it stands for: 0 is "0", and True is "true"."""
    if isinstance(key, bool):
        return str(key).lower()
    return str(key) if isinstance(key, int) else key


def wrong(key: str, expected: str, value: Any) -> ValueError:
    """Returns the error for a value of a configuration that contradicts the others."""
    return ValueError(f"`{key}` must be {expected}. Received: {key}={value!r}")


def check_default(config: Any, keys: Iterable[str], where: str) -> None:
    """Raises a ValueError if one of some keys does not have its default value.

    `where` is the case in which they have no effect, such as "without validation".
    """
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    for key in keys:
        value = getattr(config, key)
        if value != defaults[key]:
            raise wrong(key, f"left out {where}", value)


@dataclass(frozen=True)
class OptimizerOptions(Configuration):
    """Options of the optimizer."""

    weight_decay: float = option(
        0.01, number("a number, at least 0", lambda v: v >= 0), TRAINING, "Decoupled weight decay."
    )
    clip: float | None = option(
        1.0,
        number("a number above 0", lambda v: v > 0, optional=True),
        TRAINING,
        "The gradients of all weights together are scaled down to this norm.",
    )
    precision: str = option(
        "float32", choice("float32", "mixed_bfloat16"), TRAINING, "float32 or mixed_bfloat16."
    )


@dataclass(frozen=True)
class EpochOptions(Configuration):
    """Options of a training in epochs, of which one is kept."""

    early_stopping: int | None = option(
        None, whole(1, optional=True), TRAINING, "Stop after this many epochs without a new best."
    )
    keep: str = option("best", choice("best", "last"), TRAINING, "Epoch that stays: best or last.")
    seeds: int = option(1, whole(1), RUN, "How many seeds to run, from `seed` on.")

    def check_together(self) -> None:
        super().check_together()
        if self.early_stopping is not None and self.keep != "best":
            raise wrong("keep", "best with early_stopping", self.keep)


@dataclass(frozen=True)
class PlacementOptions(Configuration):
    """Options of the distribution strategy of a run."""

    steps_per_execution: int = option(
        1,
        whole(1),
        TRAINING,
        "Steps of one call of the device, which does them in one graph; between calls a run looks "
        "at its loss, saves, and stops.",
    )
    strategy: str = option(
        ONE,
        choice(*STRATEGIES),
        RUN,
        "one device, mirrored (several of this machine), multi-worker (processes that TF_CONFIG, "
        "Slurm or a JobSet names) or tpu.",
    )
    replicas: int | None = option(
        None,
        whole(1, optional=True),
        RUN,
        "Of mirrored: on how many GPUs, or parts of the CPU where there is none; by default all.",
    )


@dataclass(frozen=True)
class RunOptions(Configuration):
    """Options of the run directory and of reproducibility."""

    output: str | None = option(None, text("a folder"), RUN, "The run directory to make.")
    overwrite: bool = option(False, flag(), RUN, "Whether an existing run may be replaced.")
    resume: bool = option(
        True, flag(), RUN, "Go on with a run of this configuration that was stopped."
    )
    allow_config_change: bool = option(
        False, flag(), RUN, "Go on with a stopped run although options or data have changed."
    )
    save_every: int | None = option(
        None, whole(1, optional=True), RUN, "Steps between two states; by default five minutes."
    )
    keep_states: int = option(2, whole(1), RUN, "How many states stay, the newest ones.")
    seed: int = option(1, whole(0), RUN, "Seed of new weights, dropout and order.")
    deterministic: bool = option(
        False, flag(), RUN, "Use only operations that give the same bits again; slower."
    )
    tensorboard: bool = option(False, flag(), RUN, "Write curves for TensorBoard.")

    def check_together(self) -> None:
        super().check_together()
        if self.output is None:
            raise wrong("output", "given: the run directory to make", None)


@dataclass(frozen=True)
class ExampleOptions(Configuration):
    """Options of pretraining examples made from plain text."""

    separator: str | None = option(
        None,
        text("a regular expression"),
        "Data",
        "Pattern of whole lines that separate documents, instead of blank lines.",
    )
    encoding_errors: str = option(
        "strict",
        choice("strict", "replace"),
        "Data",
        "What bytes that are no UTF-8 are: strict (an error) or replace (U+FFFD).",
    )
    max_sequence_length: int = option(
        128, whole(5), EXAMPLES, "Tokens of an example, special ones included."
    )
    max_predictions: int | None = option(
        None, whole(1, optional=True), EXAMPLES, "Most masked tokens of an example; by default all."
    )
    masked_share: float = option(
        0.15,
        number("a number between 0 and 1", lambda v: 0 < v < 1),
        EXAMPLES,
        "Share of the tokens that are masked.",
    )
    short_share: float = option(
        0.1,
        number("a number from 0 to 1", lambda v: 0 <= v <= 1),
        EXAMPLES,
        "Share of examples that are shorter.",
    )
    packing: str = option(
        "documents",
        choice("documents", "full_sentences"),
        EXAMPLES,
        "Of one text: documents (tokens of one document) or full_sentences (whole sentences, over "
        "the ends of documents, as RoBERTa).",
    )
    whole_words: bool = option(
        False, flag(), EXAMPLES, "Whether all pieces of a word are masked together."
    )
    ngram: int = option(1, whole(1), EXAMPLES, "Longest run of words that is masked together.")


def check_strategy(config: PlacementOptions) -> None:
    """Raises a ValueError if the strategy of a run contradicts the rest of its configuration."""
    if config.replicas is not None and config.strategy != MIRRORED:
        raise wrong("replicas", f"left out with strategy={config.strategy!r}", config.replicas)
    if config.strategy != MULTI_WORKER:
        return
    for key, alone in (("seeds", 1), ("grid", False)):
        value = getattr(config, key, alone)
        if value != alone:
            raise wrong(key, f"{str(alone).lower()} with strategy={MULTI_WORKER!r}", value)
    if getattr(config, "save_every", 1) is None:
        # With saving by the clock, workers would save at different steps and wait for each other.
        raise wrong("save_every", f"given with strategy={MULTI_WORKER!r}", None)
