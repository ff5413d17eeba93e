"""`Checkpoint`: the common form that every format is read into and written from."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kbert.architectures import BERT, encoder_layout


@dataclass
class Checkpoint:
    """An encoder as named arrays, with its config, vocabulary and task heads.

    Attributes:
        config: Hyperparameters under kbert's names (`encoder_layout.CONFIG_KEYS`, and sizes of the
            architecture's layout).
        arrays: Canonical name -> array (the layout's `shapes`), in the dtype of the source
            (float32, float16, bfloat16 or float64). The pooler may be absent.
        heads: Arrays of task heads under Hugging Face's names for BERT's and in Hugging Face's
            orientation, for example `classifier.weight` (labels, D).
        vocabulary_path: The vocabulary file, one token per line, if there is one.
        lowercase: Whether text is lower-cased (and stripped of accents) before tokenization.
        source_config: The raw `config.json` of Hugging Face, or {}. Unknown fields in it survive
            a round trip; `id2label` given here is written.
        format: The format that it was read from, by the names of `read_checkpoint.DetectedFormat`.
        report: Notes on what was decided, renamed or left out while reading, one sentence each.
        vocabulary_tokens: The tokens in the order of their ids, if the source holds them but has
            no vocabulary file (a folder with only `tokenizer.json`).
        pipeline: The settings of a text model beside its encoder and heads (class, labels, ...), in
            JSON's types; {} for an encoder alone. Only kbert's own format keeps it.
        adapters: Arrays of bottleneck adapters under the paths of their variables. Only kbert's own
            format keeps them.
        adapter_config: The named adapters, their fusions, and which are active, in JSON's types; {}
            where there are none.
        features: The `config` and the `arrays` of a `FeatureBasedEncoder` on the encoder; {} where
            there is none. Only kbert's own format keeps them.
        tokenizer_rules: Settings of the tokenizer that the source has, such as `strip_accents`.
        tokenizer_files: The files of a byte-level BPE by their names, {} for a WordPiece.
        unread_tokenizer: What kbert does not read of the source's tokenizer, if it cannot split
            texts as that does.
        architecture: The name of the encoder in `kbert.architectures.ENCODERS`.
        modules_path: The `modules.json` of sentence-transformers, if it stands beside the weights.
    """

    config: dict[str, Any]
    arrays: dict[str, np.ndarray]
    heads: dict[str, np.ndarray] = field(default_factory=dict)
    vocabulary_path: Path | None = None
    lowercase: bool = True
    source_config: dict[str, Any] = field(default_factory=dict)
    format: str = "kbert"
    report: list[str] = field(default_factory=list)
    vocabulary_tokens: tuple[str, ...] | None = None
    pipeline: dict[str, Any] = field(default_factory=dict)
    adapters: dict[str, np.ndarray] = field(default_factory=dict)
    adapter_config: dict[str, Any] = field(default_factory=dict)
    features: dict[str, Any] = field(default_factory=dict)
    tokenizer_rules: dict[str, Any] = field(default_factory=dict)
    unread_tokenizer: str | None = None
    architecture: str = BERT
    tokenizer_files: dict[str, bytes] = field(default_factory=dict)
    modules_path: Path | None = None

    @property
    def has_pooler(self) -> bool:
        """Returns whether the pooler's weights are present."""
        return "pooler/kernel" in self.arrays

    @property
    def lacks_pooler(self) -> bool:
        """Returns whether the pooler's weights are absent although the encoder has a pooler."""
        return encoder_layout(self.architecture).pooler and not self.has_pooler

    @property
    def head_class(self) -> str | None:
        """Returns the class of transformers that the source names, as BERT's; None if it has none.

        An `AlbertForMaskedLM`, for example, is a `BertForMaskedLM` of another encoder.
        """
        named = (self.source_config.get("architectures") or [None])[0]
        layout = encoder_layout(self.architecture).transformers
        return named if layout is None else layout.class_of_bert(named)

    def check_format(self, format: str) -> None:
        """Raises a ValueError for a format that lacks what only kbert's own has."""
        only = {"adapters": self.adapters, "`features`, layers on a frozen encoder": self.features}
        for what, found in only.items():
            if found and format != "kbert":
                raise ValueError(
                    f'`format` must be "kbert" for an encoder with {what}. '
                    f"Received: format={format!r}"
                )

    @property
    def has_vocabulary(self) -> bool:
        """Returns whether the tokens are known."""
        one = self.vocabulary_path or self.vocabulary_tokens or self.tokenizer_files
        return bool(one)

    def vocabulary_bytes(self) -> bytes | None:
        """Returns the content of a vocabulary file, one token per line; None without vocabulary."""
        if self.vocabulary_path is not None:
            return self.vocabulary_path.read_bytes()  # unchanged, whatever its line ends are
        if self.vocabulary_tokens is not None:
            return "".join(f"{token}\n" for token in self.vocabulary_tokens).encode("utf-8")
        return None
