"""`EncoderLayout`: names, shapes and settings of an encoder's weights on disk."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kbert.checkpoints.arrays.canonical_names import canonical_shapes
from kbert.checkpoints.arrays.encoder_config import check_config
from kbert.checkpoints.arrays.weight_table import (
    Shapes,
    WeightEntry,
    check_arrays,
    weight_table,
)


@dataclass(frozen=True)
class HuggingFaceLayout:
    """An encoder in the layout of transformers.

    Heads have the names of BERT's in a `Checkpoint`, and the tasks name classes as BERT's;
    `class_of` and `head_names` map them to those of the architecture.

    Attributes:
        model_type: of `config.json`; with a dot the prefix of the encoder's tensors beside heads.
        class_prefix: beginning of the names of its classes.
        keys: kbert's key of the configuration -> (Hugging Face's key, its default).
        classes: class -> (beginnings of the names of its heads' tensors, whether it has a pooler).
        names: canonical name -> names in the file, of the weights outside the blocks.
        block_names: the same for one block; `{i}` stands for its index.
        plain: fields that change what the encoder computes -> the values that change nothing.
        causal: the field that says that no position sees a later one; None where it cannot be.
        causal_classes: the classes for such an encoder.
        head_dropout: the field of the dropout of heads.
        head_names: beginning of a head's tensor in a `Checkpoint` -> its beginning in the file, the
            longer ones first; those of BERT stay.
    """

    model_type: str
    class_prefix: str
    keys: Mapping[str, tuple[str, Any]]
    classes: Mapping[str, tuple[tuple[str, ...], bool]]
    names: Mapping[str, tuple[str, ...]]
    block_names: Mapping[str, tuple[str, ...]]
    plain: Mapping[str, tuple[Any, ...]]
    causal: str | None = None
    causal_classes: tuple[str, ...] = ()
    head_dropout: str = "classifier_dropout"
    head_names: Mapping[str, str] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """Returns the prefix of the encoder's tensors in a file with heads."""
        return f"{self.model_type}."

    def class_of(self, name: str) -> str:
        """Returns the architecture's class for BERT's, `BertForMaskedLM` for example.

        Args:
            name: BERT's class, or one of the architecture's own.
        """
        return name if name in self.classes else self.class_prefix + name.removeprefix("Bert")

    def class_of_bert(self, name: str | None) -> str | None:
        """Returns BERT's class for one of the architecture's; another name as it is.

        Args:
            name: the class, or None.
        """
        if name is None or name not in self.classes:
            return name
        return f"Bert{name.removeprefix(self.class_prefix)}"

    def head_in_file(self, name: str) -> str:
        """Returns the name in the file of a head's tensor.

        Args:
            name: its name in a `Checkpoint`.
        """
        for ours, theirs in self.head_names.items():
            if name.startswith(ours):
                return theirs + name.removeprefix(ours)
        return name

    def head_of_file(self, name: str) -> str:
        """Returns the name in a `Checkpoint` of a tensor; one that is of no head stays.

        Args:
            name: its name in the file, without the encoder's prefix.
        """
        for ours, theirs in self.head_names.items():
            if name.startswith(theirs):
                return ours + name.removeprefix(theirs)
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
        check: checks a configuration with other keys than BERT's, given with the origin that errors
            name; `vocabulary_size` and `max_sequence_length` must be among them. None for BERT's.
    """

    architecture: str
    title: str
    transformers: HuggingFaceLayout | None
    shapes: Shapes = canonical_shapes
    sizes: tuple[str, ...] = ()
    check: Callable[[Mapping[str, Any], str], None] | None = None

    @property
    def huggingface(self) -> HuggingFaceLayout:
        """Returns the layout in transformers.

        Raises:
            ValueError: transformers have no such encoder.
        """
        if self.transformers is None:
            raise ValueError(
                f"`architecture` must be one that transformers has. Received: {self.title}, "
                f"architecture={self.architecture!r}"
            )
        return self.transformers

    def check_config(self, config: Mapping[str, Any], source: str) -> None:
        """Checks that a configuration has all keys of the architecture, and valid values.

        Args:
            config: hyperparameters under kbert's names.
            source: the origin that errors name.

        Raises:
            ValueError: a key is missing, unknown or invalid.
        """
        if self.check is not None:
            self.check(config, source)
        else:
            check_config(config, source, self.sizes)

    def check_arrays(
        self, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray], source: str
    ) -> None:
        """Checks canonical arrays against a configuration; the pooler may be absent.

        Args:
            config: hyperparameters under kbert's names.
            arrays: canonical name -> array.
            source: the origin that errors name.

        Raises:
            ValueError: an array is missing, unknown or has a wrong shape; the message names each.
        """
        check_arrays(config, arrays, source, self.shapes, self.title)

    def huggingface_table(self, config: Mapping[str, Any]) -> list[WeightEntry]:
        """Returns the table of its weights in the layout of transformers.

        Args:
            config: hyperparameters under kbert's names.
        """
        names = self.huggingface
        return weight_table(
            config, names.names, names.block_names, transposed_kernels=True, shapes=self.shapes
        )
