"""`PretrainingConfig`: all options of a pretraining run, and the definition of their defaults."""

from dataclasses import dataclass

from kbert.models.sizes import BERT_SIZES
from kbert.options.kinds import choice, flag, number, option, patterns, text, whole
from kbert.options.shared import (
    EXAMPLES,
    RUN,
    TRAINING,
    ExampleOptions,
    OptimizerOptions,
    PlacementOptions,
    RunOptions,
)
from kbert.tasks.pretraining.objectives import LEARNING_RATE, OBJECTIVES, WARMUP_STEPS
from kbert.training.config.pretraining_checks import check_pretraining

TASK = "pretraining"
_DATA, _MODEL = "Data", "Model"
_LEAST_ONE = whole(1, optional=True)
_RATE = number("a number in [0, 1)", lambda v: 0 <= v < 1)
_OF_A_SIZE = "Instead of the size's."
_PATTERN = text("a regular expression")
_ENCODER = text("an encoder")
_TOKENS = text("a vocab.txt")
_FOLDER = text("a folder")


@dataclass(frozen=True)
class PretrainingConfig(ExampleOptions, OptimizerOptions, PlacementOptions, RunOptions):
    """The configuration of a run that pretrains an encoder on plain text.

    The metadata of each field holds its type and bounds (`kind`) and its description (`help`); the
    command line and the error messages use these. `docs/pretraining.md` lists them all.

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
    objective: str = option(
        "mlm_nsp",
        choice(*OBJECTIVES),
        EXAMPLES,
        "mlm: masked tokens; lm: each next token, from left to right; _nsp: also whether a text "
        "follows another.",
    )
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
    steps: int = option(100_000, whole(1), TRAINING, "Batches in all.")
    batch_size: int = option(32, whole(1), TRAINING, "Examples of a batch.")
    learning_rate: float = option(
        LEARNING_RATE,
        number("a number above 0", lambda v: v > 0),
        TRAINING,
        "Peak of the rate; it falls linearly to 0 at the last step.",
    )
    warmup_steps: int | None = option(
        None,
        whole(0, optional=True),
        TRAINING,
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
        check_pretraining(self)
        super().check_together()

    @property
    def warmup(self) -> int:
        """Number of steps of the learning rate's warm-up."""
        if self.warmup_steps is not None:
            return self.warmup_steps
        return min(WARMUP_STEPS, self.steps // 10)
