"""All options of a pretraining run, and of preparing its records; defaults, contradictions."""

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kbert.architectures import BERT, ENCODERS
from kbert.data.pretraining.corpus_cuts import BLOCK_BYTES
from kbert.models.sizes import BERT_SIZES
from kbert.options.configuration import (
    EXAMPLES,
    RUN,
    TRAINING,
    ExampleOptions,
    OptimizerOptions,
    PlacementOptions,
    RunOptions,
    check_default,
    wrong,
)
from kbert.options.kinds import choice, flag, number, option, patterns, rate, text, whole
from kbert.tasks.pretraining.objectives import (
    LEARNING_RATE,
    OBJECTIVES,
    WARMUP_STEPS,
    has_pairs,
    is_causal,
)

TASK = "pretraining"
_DATA, _MODEL, _OUTPUT = "Data", "Model", "Output"
# Fixed by the encoder from which a run continues.
_OF_A_NEW_MODEL = (
    *("architecture", "lowercase", "size", "num_layers", "hidden_dim", "num_heads"),
    *("intermediate_dim", "positions"),
)
# Fixed when records were prepared.
_OF_TEXT = ("separator", "encoding_errors", "short_share", "packing")
_OF_MASKS = ("max_predictions", "masked_share", "whole_words", "ngram")
_LEAST_ONE = whole(1, optional=True)
_OF_A_SIZE = "Instead of the size's."
_ENCODER = text("an encoder")
_TOKENS = text("a vocab.txt")
_FOLDER = text("a folder")


@dataclass(frozen=True)
class PretrainingConfig(ExampleOptions, OptimizerOptions, PlacementOptions, RunOptions):
    """The configuration of a run that pretrains an encoder; see `docs/pretraining.md`."""

    task: str = option(TASK, choice(TASK), _DATA, "What is learned.")
    text: list[str] | None = option(
        None, patterns(), _DATA,
        "Files of plain text, or patterns such as corpus/*.txt, with a comma between: UTF-8, also "
        ".gz, a blank line between documents.",
    )
    records: list[str] | None = option(
        None, patterns(), _DATA,
        "Instead of text: TFRecords of examples in the layout of google-research/bert.",
    )
    validation: list[str] | None = option(
        None, patterns(), _DATA, "What is measured at each saved state: text, or records too."
    )
    objective: str = option(
        "mlm_nsp", choice(*OBJECTIVES), EXAMPLES,
        "mlm: masked tokens; lm: each next token, from left to right; _nsp: also whether a text "
        "follows another.",
    )
    encoder: str | None = option(
        None, _ENCODER, _MODEL,
        "Go on from this encoder: a published name, a folder, or a run of pretraining.",
    )
    vocabulary: str | None = option(
        None, _TOKENS, _MODEL,
        "Instead: begin anew, with the tokens of this file: a vocab.txt, or for roberta a "
        "vocab.json beside its merges.txt.",
    )
    vocabulary_size: int | None = option(
        None, _LEAST_ONE, _MODEL,
        "Instead: begin anew, with at most so many tokens, learned from the text.",
    )
    architecture: str = option(
        BERT, choice(*ENCODERS), _MODEL,
        "Of a new model. roberta reads bytes as tokens, and learns no next sentences.",
    )
    lowercase: bool = option(
        True, flag(), _MODEL, "Whether a new model of WordPiece lower-cases and strips accents."
    )
    size: str = option("base", choice(*BERT_SIZES), _MODEL, f"{', '.join(BERT_SIZES)}.")
    num_layers: int | None = option(None, _LEAST_ONE, _MODEL, _OF_A_SIZE)
    hidden_dim: int | None = option(None, _LEAST_ONE, _MODEL, _OF_A_SIZE)
    num_heads: int | None = option(None, _LEAST_ONE, _MODEL, _OF_A_SIZE)
    intermediate_dim: int | None = option(None, _LEAST_ONE, _MODEL, _OF_A_SIZE)
    positions: int = option(512, whole(5), _MODEL, "Longest sequence that a new model can read.")
    dropout: float = option(0.1, rate(), _MODEL, "Dropout rate of sublayers and embeddings.")
    attention_dropout: float = option(0.1, rate(), _MODEL, "Dropout rate of attention.")
    gradient_checkpointing: bool = option(
        False, flag(), _MODEL, "Compute each block again in the backward pass: less memory."
    )
    steps: int = option(100_000, whole(1), TRAINING, "Batches in all.")
    batch_size: int = option(32, whole(1), TRAINING, "Examples of a batch.")
    learning_rate: float = option(
        LEARNING_RATE, number("a number above 0", lambda v: v > 0), TRAINING,
        "Peak of the rate; it falls linearly to 0 at the last step.",
    )
    warmup_steps: int | None = option(
        None, whole(0, optional=True), TRAINING,
        "Steps in which the rate rises; by default 10,000, or a tenth of fewer than 100,000.",
    )
    save_every: int = option(
        1000, whole(1), RUN, "Steps between two states, each measured and written."
    )
    validation_steps: int = option(
        100, whole(1), RUN, "Batches of the validation text that are measured, always the same."
    )
    seed: int = option(1, whole(0), RUN, "Seed of new weights, dropout, examples and masks.")

    def check_together(self) -> None:
        """Checks the values against each other."""
        _check_pretraining(self)
        super().check_together()

    @property
    def warmup(self) -> int:
        """Number of steps of the learning rate's warm-up."""
        if self.warmup_steps is not None:
            return self.warmup_steps
        return min(WARMUP_STEPS, self.steps // 10)


def _check_pretraining(config: PretrainingConfig) -> None:
    if config.records is not None:
        _check_records(config)
    elif config.text is None:
        raise wrong("text", "given: the files to learn from", None)
    given = {key: getattr(config, key) for key in ("encoder", "vocabulary", "vocabulary_size")}
    if sum(value is not None for value in given.values()) != 1:
        raise ValueError(
            "One of `encoder`, to go on from, and `vocabulary` or `vocabulary_size`, to begin "
            f"anew, must be given. Received: {', '.join(f'{k}={v!r}' for k, v in given.items())}"
        )
    if config.encoder is not None:
        check_default(config, _OF_A_NEW_MODEL, "with encoder, which has its own")
    elif config.max_sequence_length > config.positions:
        wanted = f"at most {config.positions}, the positions of the new model"
        raise wrong("max_sequence_length", wanted, config.max_sequence_length)
    if config.architecture != BERT and has_pairs(config.objective):
        wanted = f"mlm or lm with architecture={config.architecture!r}"
        raise wrong("objective", wanted, config.objective)
    if ENCODERS[config.architecture].byte_level:
        check_default(config, ("lowercase",), f"with architecture {config.architecture}")
    check_packing(config)
    if is_causal(config.objective):
        check_default(config, _OF_MASKS, f"with objective {config.objective}, which masks nothing")
    if config.validation is None:
        check_default(config, ("validation_steps",), "without validation")
    if config.warmup > config.steps:
        raise wrong("warmup_steps", f"at most {config.steps}, the steps", config.warmup_steps)
    steps = config.steps_per_execution
    if config.save_every % steps:
        raise wrong("save_every", f"a multiple of steps_per_execution={steps}", config.save_every)


def _check_records(config: PretrainingConfig) -> None:
    if config.text is not None:
        raise wrong("text", "left out with records", config.text)
    check_default(config, (*_OF_TEXT, *_OF_MASKS), "with records, whose examples are ready")
    if is_causal(config.objective):
        raise wrong("objective", "mlm or mlm_nsp with records, which are masked", config.objective)
    if config.vocabulary_size is not None:
        expected = "left out with records: vocabulary is what they were made with"
        raise wrong("vocabulary_size", expected, config.vocabulary_size)


@dataclass(frozen=True)
class PreparationConfig(ExampleOptions):
    """The configuration of preparing pretraining records from plain text."""

    text: list[str] | None = option(
        None, patterns(), _DATA, "Files of plain text, or patterns, as of kbert pretrain."
    )
    block_bytes: int = option(
        BLOCK_BYTES, whole(16), _DATA, "Bytes read at a time; other blocks have other examples."
    )
    vocabulary: str | None = option(
        None, _TOKENS, _DATA, "The tokens: a vocab.txt, or a vocab.json beside its merges.txt."
    )
    lowercase: bool = option(True, flag(), _DATA, "Whether text is lower-cased without accents.")
    objective: str = option(
        "mlm_nsp", choice("mlm_nsp", "mlm"), EXAMPLES, "mlm_nsp: pairs of texts; mlm: one text."
    )
    copies: int = option(1, whole(1), EXAMPLES, "Passes over the text, each with other examples.")
    seed: int = option(1, whole(0), EXAMPLES, "Seed of examples and masks.")
    output: str | None = option(None, _FOLDER, _OUTPUT, "The folder to make.")
    overwrite: bool = option(False, flag(), _OUTPUT, "Whether a folder there may be replaced.")
    shards: int = option(1, whole(1), _OUTPUT, "Into how many files; examples go by turns.")
    compress: bool = option(False, flag(), _OUTPUT, "Whether the files are gzipped.")

    def check_together(self) -> None:
        """Checks that all required values are given."""
        for key, what in (
            ("text", "the files to make examples of"),
            ("vocabulary", "a file with a token a line"),
            ("output", "the folder to make"),
        ):
            if getattr(self, key) is None:
                raise wrong(key, f"given: {what}", None)
        check_packing(self)

    def check_output(self) -> Path:
        """Returns the output folder, if it may be created; nothing looks into it."""
        output = Path(self.output or "")
        if output.exists() and not self.overwrite:
            raise FileExistsError(
                "`output` must not exist yet, unless overwrite is true (--overwrite). "
                f"Received: output={output}"
            )
        if output.exists() and not output.is_dir():
            raise NotADirectoryError(f"`output` must be a folder. Received a file: output={output}")
        return output


def check_packing(config: PretrainingConfig | PreparationConfig) -> None:
    """Raises a ValueError if examples of pairs are to be packed otherwise than by documents."""
    if has_pairs(config.objective):
        check_default(config, ("packing",), f"with objective {config.objective}, of two texts")


ELSEWHERE = "://"


def found_files(key: str, patterns: Sequence[str]) -> list[Path]:
    """Returns the files that match names, or patterns with `*`, `?`, `[...]` and `**`, each once.

    The files of a pattern are sorted; a FileNotFoundError if it has none, a ValueError if they are
    not on this machine's disks.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        if ELSEWHERE in pattern:
            raise ValueError(
                f"`{key}` must be files of this machine: only records are read from elsewhere. "
                f"Received: {pattern!r}"
            )
        # A file may have a star in its name.
        names = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern, recursive=True))
        files = [Path(name) for name in names if not Path(name).is_dir()]
        if not files:
            raise no_file(key, pattern)
        found.update(dict.fromkeys(files))
    return list(found)


def no_file(key: str, pattern: str) -> FileNotFoundError:
    """Returns the error for a pattern that matches no file."""
    folder = ", which is a folder" if ELSEWHERE not in pattern and Path(pattern).is_dir() else ""
    return FileNotFoundError(
        f"`{key}` must be files, or patterns that match some. Received: {pattern!r}{folder}"
    )
