"""`EncoderLayout`: names, shapes and settings of an encoder's weights on disk.

The settings are an encoder's hyperparameters under kbert's names (`CONFIG_KEYS`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kbert.checkpoints.arrays.weight_table import (
    Shapes,
    WeightEntry,
    canonical_shapes,
    check_arrays,
    weight_table,
)
from kbert.hints import nearest

# Valid values, in words and as a function. A bool is an int in Python, but no number here.
_Values = tuple[str, Callable[[Any], bool]]
_SIZE: _Values = ("a positive whole number", lambda v: type(v) is int and v >= 1)
_RATE: _Values = ("a number in [0, 1)", lambda v: _is_number(v) and 0 <= v < 1)
_POSITIVE: _Values = ("a positive number", lambda v: _is_number(v) and v > 0)
_FLAG: _Values = ("true or false", lambda v: type(v) is bool)
_KEYS: dict[str, _Values] = {
    "vocabulary_size": _SIZE,
    "hidden_dim": _SIZE,
    "num_layers": _SIZE,
    "num_heads": _SIZE,
    "intermediate_dim": _SIZE,
    "max_sequence_length": _SIZE,
    "num_segments": _SIZE,
    "dropout": _RATE,
    "attention_dropout": _RATE,
    "activation": ("a name", lambda v: isinstance(v, str)),
    "layer_norm_epsilon": _POSITIVE,
    "initializer_range": _POSITIVE,
}
CONFIG_KEYS = tuple(_KEYS)
# Optional, False by default: each position sees only itself and what came before.
CAUSAL = "causal"


def check_config(
    config: Mapping[str, Any],
    source: str,
    more_sizes: tuple[str, ...] = (),
    lacking: tuple[str, ...] = (),
    more_rates: tuple[str, ...] = (),
) -> None:
    """Checks that a configuration has all known keys, no other ones, and valid values.

    `more_sizes` and `more_rates` are what an architecture has beside the keys of BERT, `lacking`
    those that it has not. The ValueError begins with `source`, and names for an unknown key the
    nearest known one.
    """
    own = dict.fromkeys(more_sizes, _SIZE) | dict.fromkeys(more_rates, _RATE)
    keys = tuple(key for key in (*CONFIG_KEYS, *own) if key not in lacking)
    every = {**_KEYS, **own, CAUSAL: _FLAG}
    known = {key: values for key, values in every.items() if key not in lacking}
    for key in config:
        if key not in known:
            raise ValueError(
                f"{source}: the configuration must have only the keys {', '.join(keys)}."
                f" Received: {key!r}.{nearest(key, known)}"
            )
    missing = [key for key in keys if key not in config]
    if missing:
        raise ValueError(f"{source}: the configuration must have {', '.join(missing)}.")
    _check_values({key: config.get(key, False) for key in known}, known, f"{source}: ")
    if config["hidden_dim"] % config["num_heads"]:
        raise ValueError(
            f"{source}: `hidden_dim` must be a multiple of `num_heads`. Received: "
            f"hidden_dim={config['hidden_dim']}, num_heads={config['num_heads']}"
        )


def check_values(arguments: Mapping[str, Any]) -> None:
    """Raises a ValueError for an argument of an encoder that its configuration could not hold.

    Those that have no key of BERT's configuration are left out.
    """
    known = {**_KEYS, CAUSAL: _FLAG, "gradient_checkpointing": _FLAG}
    _check_values(arguments, {key: known[key] for key in known if key in arguments}, "")


def _check_values(values: Mapping[str, Any], known: Mapping[str, _Values], where: str) -> None:
    for key, (wanted, accepts) in known.items():
        if not accepts(values[key]):
            raise ValueError(f"{where}`{key}` must be {wanted}. Received: {key}={values[key]!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class HeadClass(NamedTuple):
    """A class of transformers, by its heads.

    Attributes:
        heads: beginnings of the names of its heads' tensors in a `Checkpoint`.
        pooler: whether it has a pooler.
        names: beginning of a head's tensor in a `Checkpoint` -> its beginning in the file, where
            other classes of the architecture have another name for it.
        dropout: the field of the dropout of its head, where it is another than for other classes;
            "" where it has none.
        is_berts: whether BERT's class of that name has the same head.
    """

    heads: tuple[str, ...]
    pooler: bool
    names: Mapping[str, str] = {}
    dropout: str | None = None
    is_berts: bool = True


@dataclass(frozen=True)
class HuggingFaceLayout:
    """An encoder in the layout of transformers.

    Heads have the names of BERT's in a `Checkpoint`, and the tasks name classes as BERT's;
    `class_of` and `head_names` map them to those of the architecture.

    Attributes:
        model_type: of `config.json`; with a dot the prefix of the encoder's tensors beside heads.
        class_prefix: beginning of the names of its classes.
        keys: kbert's key of the configuration -> (Hugging Face's key, its default).
        classes: class -> its heads.
        names: canonical name -> names in the file, of the weights outside the blocks.
        block_names: the same for one block; `{i}` stands for its index.
        plain: fields that change what the encoder computes -> the values that change nothing.
        causal: the field that says that no position sees a later one; None where it cannot be.
        causal_classes: the classes for such an encoder.
        head_dropout: the field of the dropout of heads.
        head_names: beginning of a head's tensor in a `Checkpoint` -> its beginning in the file, the
            longer ones first; those of BERT stay.
        first_position: the row of the first position in its table.
    """

    model_type: str
    class_prefix: str
    keys: Mapping[str, tuple[str, Any]]
    classes: Mapping[str, HeadClass]
    names: Mapping[str, tuple[str, ...]]
    block_names: Mapping[str, tuple[str, ...]]
    plain: Mapping[str, tuple[Any, ...]]
    causal: str | None = None
    causal_classes: tuple[str, ...] = ()
    head_dropout: str = "classifier_dropout"
    head_names: Mapping[str, str] = field(default_factory=dict)
    first_position: int = 0

    @property
    def prefix(self) -> str:
        """Returns the prefix of the encoder's tensors in a file with heads."""
        return f"{self.model_type}."

    def class_of(self, name: str) -> str:
        """Returns the architecture's class for BERT's, such as `BertForMaskedLM`, or its own."""
        return name if name in self.classes else self.class_prefix + name.removeprefix("Bert")

    def class_of_bert(self, name: str | None) -> str | None:
        """Returns BERT's class for one of the architecture's; another name as it is."""
        if name is None or name not in self.classes or not self.classes[name].is_berts:
            return name
        return f"Bert{name.removeprefix(self.class_prefix)}"

    def head_in_file(self, name: str, architecture: str | None = None) -> str:
        """Returns the name in the file of a head's tensor in a `Checkpoint`, of one class."""
        own = {} if architecture is None else self.classes[architecture].names
        return _renamed(name, [*own.items(), *self.head_names.items()])

    def head_of_file(self, name: str) -> str:
        """Returns the name in a `Checkpoint` of a file's tensor without the encoder's prefix."""
        tables = [*(one.names for one in self.classes.values()), self.head_names]
        return _renamed(name, [(theirs, ours) for t in tables for ours, theirs in t.items()])

    def dropout_of(self, architecture: str) -> str:
        """Returns the field of the dropout of a class's head; "" where it has none."""
        own = self.classes[architecture].dropout
        return self.head_dropout if own is None else own


def _renamed(name: str, beginnings: Iterable[tuple[str, str]]) -> str:
    for before, after in beginnings:
        if name.startswith(before):
            return after + name.removeprefix(before)
    return name


@dataclass(frozen=True)
class EncoderLayout:
    """The weights of an architecture on disk.

    Attributes:
        architecture: its name in `kbert.architectures`.
        title: the model that errors name, "a BERT encoder".
        transformers: its layout in transformers; None where they have no such encoder.
        shapes: maps a configuration to canonical name -> shape, the order that of the weights.
        sizes: keys of its configuration beside those of BERT; each a positive whole number.
        rates: the same for rates of dropout.
        lacking: keys of BERT's configuration that it has not, "causal" where it cannot be.
        pooler: whether it has a pooler, whose weights may be absent.
        check: checks a configuration with other keys than BERT's, given with the origin that errors
            name; `vocabulary_size` and `max_sequence_length` must be among them. None for BERT's.
    """

    architecture: str
    title: str
    transformers: HuggingFaceLayout | None
    shapes: Shapes = canonical_shapes
    sizes: tuple[str, ...] = ()
    rates: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    pooler: bool = True
    check: Callable[[Mapping[str, Any], str], None] | None = None

    @property
    def huggingface(self) -> HuggingFaceLayout:
        """Returns the layout in transformers; raises a ValueError if they have no such encoder."""
        if self.transformers is None:
            raise ValueError(
                f"`architecture` must be one that transformers has. Received: {self.title}, "
                f"architecture={self.architecture!r}"
            )
        return self.transformers

    def check_config(self, config: Mapping[str, Any], source: str) -> None:
        """Raises a ValueError unless the architecture has such a configuration."""
        if self.check is None:
            check_config(config, source, self.sizes, self.lacking, self.rates)
        else:
            self.check(config, source)

    def check_arrays(
        self, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray], source: str
    ) -> None:
        """Checks canonical arrays as `weight_table.check_arrays` does."""
        check_arrays(config, arrays, source, self.shapes, self.title)

    def huggingface_table(self, config: Mapping[str, Any]) -> list[WeightEntry]:
        """Returns the table of its weights in the layout of transformers."""
        names = self.huggingface
        return weight_table(
            config, names.names, names.block_names, transposed_kernels=True, shapes=self.shapes
        )
