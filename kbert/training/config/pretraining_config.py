"""`PretrainingConfig`: all that a run of pretraining can be told, and the place of its defaults."""

from dataclasses import dataclass

from kbert.models.sizes import BERT_SIZES
from kbert.tasks.pretraining.objectives import LEARNING_RATE, OBJECTIVES, WARMUP_STEPS
from kbert.training.config.configuration import Configuration
from kbert.training.config.option_kinds import choice, flag, number, option, patterns, text, whole
from kbert.training.config.pretraining_checks import check_pretraining
from kbert.training.config.strategy_options import (
    execution_option,
    replicas_option,
    strategy_option,
)

TASK = "pretraining"
_DATA, _EXAMPLES, _MODEL = "Data", "Examples", "Model"
_TRAINING, _RUN = "Training", "Run"
_LEAST_ONE = whole(1, optional=True)
_RATE = number("a number in [0, 1)", lambda v: 0 <= v < 1)
_OF_A_SIZE = "Instead of the size's."
_PATTERN = text("a regular expression")
_ENCODER = text("an encoder")
_TOKENS = text("a vocab.txt")
_FOLDER = text("a folder")


@dataclass(frozen=True)
class PretrainingConfig(Configuration):
    """The configuration of a run that pretrains an encoder on plain text.

    Each field says in its metadata what it may be (`kind`) and what it is for (`help`); the command
    line and the errors take their words from there. `docs/pretraining.md` lists them all.

    Raises:
        ValueError: A value is of the wrong type or out of bounds, or two values contradict each
            other; the message names key, expectation and value.
    """

    task: str = option(TASK, choice(TASK), _DATA, "What is learned.")
    text: list[str] | None = option(
        None,
        patterns(),
        _DATA,
        "Files of plain text, or patterns such as corpus/*.txt, with a comma between: UTF-8, also "
        ".gz, a blank line between documents.",
    )
    records: list[str] | None = option(
        None,
        patterns(),
        _DATA,
        "Instead of text: TFRecords of examples in the layout of google-research/bert.",
    )
    validation: list[str] | None = option(
        None, patterns(), _DATA, "What is measured at each saved state: text, or records too."
    )
    separator: str | None = option(
        None,
        _PATTERN,
        _DATA,
        "Pattern of whole lines that separate documents, instead of blank lines.",
    )
    encoding_errors: str = option(
        "strict",
        choice("strict", "replace"),
        _DATA,
        "What bytes that are no UTF-8 are: strict (an error) or replace (U+FFFD).",
    )
    objective: str = option(
        "mlm_nsp",
        choice(*OBJECTIVES),
        _EXAMPLES,
        "mlm: masked tokens; lm: each next token, from left to right; _nsp: also whether a text "
        "follows another.",
    )
    max_sequence_length: int = option(
        128, whole(5), _EXAMPLES, "Tokens of an example, special ones included."
    )
    max_predictions: int | None = option(
        None, _LEAST_ONE, _EXAMPLES, "Most masked tokens of an example; by default all."
    )
    masked_share: float = option(
        0.15,
        number("a number between 0 and 1", lambda v: 0 < v < 1),
        _EXAMPLES,
        "Share of the tokens that are masked.",
    )
    short_share: float = option(
        0.1,
        number("a number from 0 to 1", lambda v: 0 <= v <= 1),
        _EXAMPLES,
        "Share of examples that are shorter.",
    )
    whole_words: bool = option(
        False, flag(), _EXAMPLES, "Whether all pieces of a word are masked together."
    )
    ngram: int = option(1, whole(1), _EXAMPLES, "Longest run of words that is masked together.")
    encoder: str | None = option(
        None,
        _ENCODER,
        _MODEL,
        "Go on from this encoder: a published name, a folder, or a run of pretraining.",
    )
    vocabulary: str | None = option(
        None, _TOKENS, _MODEL, "Instead: begin anew, with the tokens of this file."
    )
    vocabulary_size: int | None = option(
        None,
        _LEAST_ONE,
        _MODEL,
        "Instead: begin anew, with at most so many tokens, learned from the text.",
    )
    lowercase: bool = option(
        True, flag(), _MODEL, "Whether a new model lower-cases and strips accents."
    )
    size: str = option("base", choice(*BERT_SIZES), _MODEL, f"{', '.join(BERT_SIZES)}.")
    num_layers: int | None = option(None, _LEAST_ONE, _MODEL, _OF_A_SIZE)
    hidden_dim: int | None = option(None, _LEAST_ONE, _MODEL, _OF_A_SIZE)
    num_heads: int | None = option(None, _LEAST_ONE, _MODEL, _OF_A_SIZE)
    intermediate_dim: int | None = option(None, _LEAST_ONE, _MODEL, _OF_A_SIZE)
    positions: int = option(512, whole(5), _MODEL, "Longest sequence that a new model can read.")
    dropout: float = option(0.1, _RATE, _MODEL, "Dropout rate of sublayers and embeddings.")
    attention_dropout: float = option(0.1, _RATE, _MODEL, "Dropout rate of attention.")
    gradient_checkpointing: bool = option(
        False, flag(), _MODEL, "Compute each block again in the backward pass: less memory."
    )
    steps: int = option(100_000, whole(1), _TRAINING, "Batches in all.")
    batch_size: int = option(32, whole(1), _TRAINING, "Examples of a batch.")
    learning_rate: float = option(
        LEARNING_RATE,
        number("a number above 0", lambda v: v > 0),
        _TRAINING,
        "Peak of the rate; it falls linearly to 0 at the last step.",
    )
    warmup_steps: int | None = option(
        None,
        whole(0, optional=True),
        _TRAINING,
        "Steps in which the rate rises; by default 10,000, or a tenth of fewer than 100,000.",
    )
    weight_decay: float = option(
        0.01, number("a number, at least 0", lambda v: v >= 0), _TRAINING, "Decoupled weight decay."
    )
    clip: float | None = option(
        1.0,
        number("a number above 0", lambda v: v > 0, optional=True),
        _TRAINING,
        "The gradients together are scaled down to this norm.",
    )
    precision: str = option(
        "float32", choice("float32", "mixed_bfloat16"), _TRAINING, "float32 or mixed_bfloat16."
    )
    steps_per_execution: int = execution_option(_TRAINING)
    output: str | None = option(None, _FOLDER, _RUN, "The run directory to make.")
    overwrite: bool = option(False, flag(), _RUN, "Whether an existing run may be replaced.")
    resume: bool = option(
        True, flag(), _RUN, "Go on with a run of this configuration that was stopped."
    )
    allow_config_change: bool = option(
        False, flag(), _RUN, "Go on with a stopped run although options or data have changed."
    )
    save_every: int = option(
        1000, whole(1), _RUN, "Steps between two states, each measured and written."
    )
    keep_states: int = option(2, whole(1), _RUN, "How many states stay, the newest ones.")
    validation_steps: int = option(
        100, whole(1), _RUN, "Batches of the validation text that are measured, always the same."
    )
    seed: int = option(1, whole(0), _RUN, "Seed of new weights, dropout, examples and masks.")
    deterministic: bool = option(
        False, flag(), _RUN, "Use only operations that give the same bits again; slower."
    )
    strategy: str = strategy_option(_RUN)
    replicas: int | None = replicas_option(_RUN)
    tensorboard: bool = option(False, flag(), _RUN, "Write curves for TensorBoard.")

    def check_together(self) -> None:
        """Checks the values against each other."""
        check_pretraining(self)

    @property
    def warmup(self) -> int:
        """Steps in which the rate rises."""
        if self.warmup_steps is not None:
            return self.warmup_steps
        return min(WARMUP_STEPS, self.steps // 10)
