"""`PreparationConfig`: all that the making of records to pretrain on can be told."""

from dataclasses import dataclass
from pathlib import Path

from kbert.data.pretraining.corpus_cuts import BLOCK_BYTES
from kbert.training.config.configuration import Configuration, wrong
from kbert.training.config.option_kinds import choice, flag, number, option, patterns, text, whole

_DATA, _EXAMPLES, _OUTPUT = "Data", "Examples", "Output"
_PATTERN, _TOKENS, _FOLDER = text("a regular expression"), text("a vocab.txt"), text("a folder")


@dataclass(frozen=True)
class PreparationConfig(Configuration):
    """The configuration that makes records of plain text.

    Raises:
        ValueError: A value is of the wrong type or out of bounds, or one is missing.
    """

    text: list[str] | None = option(
        None, patterns(), _DATA, "Files of plain text, or patterns, as of kbert pretrain."
    )
    separator: str | None = option(
        None, _PATTERN, _DATA, "Pattern of whole lines between documents."
    )
    encoding_errors: str = option(
        "strict", choice("strict", "replace"), _DATA, "What bytes that are no UTF-8 are."
    )
    block_bytes: int = option(
        BLOCK_BYTES, whole(16), _DATA, "Bytes read at a time; other blocks have other examples."
    )
    vocabulary: str | None = option(None, _TOKENS, _DATA, "The tokens, one a line.")
    lowercase: bool = option(True, flag(), _DATA, "Whether text is lower-cased without accents.")
    objective: str = option(
        "mlm_nsp", choice("mlm_nsp", "mlm"), _EXAMPLES, "mlm_nsp: pairs of texts; mlm: one text."
    )
    max_sequence_length: int = option(
        128, whole(5), _EXAMPLES, "Tokens of an example, special ones included."
    )
    max_predictions: int | None = option(
        None, whole(1, optional=True), _EXAMPLES, "Most masked tokens; by default all."
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
    whole_words: bool = option(False, flag(), _EXAMPLES, "Whether words are masked as a whole.")
    ngram: int = option(1, whole(1), _EXAMPLES, "Longest run of words that is masked together.")
    copies: int = option(1, whole(1), _EXAMPLES, "Passes over the text, each with other examples.")
    seed: int = option(1, whole(0), _EXAMPLES, "Seed of examples and masks.")
    output: str | None = option(None, _FOLDER, _OUTPUT, "The folder to make.")
    overwrite: bool = option(False, flag(), _OUTPUT, "Whether a folder there may be replaced.")
    shards: int = option(1, whole(1), _OUTPUT, "Into how many files; examples go by turns.")
    compress: bool = option(False, flag(), _OUTPUT, "Whether the files are gzipped.")

    def check_together(self) -> None:
        """Checks that what is needed is there."""
        for key, what in (
            ("text", "the files to make examples of"),
            ("vocabulary", "a file with a token a line"),
            ("output", "the folder to make"),
        ):
            if getattr(self, key) is None:
                raise wrong(key, f"given: {what}", None)

    def check_output(self) -> Path:
        """Checks whether the folder may be made, as far as its name tells; returns it.

        Raises:
            FileExistsError: It is there, and may not be replaced.
            NotADirectoryError: It is a file.
        """
        output = Path(self.output or "")
        if output.exists() and not self.overwrite:
            raise FileExistsError(
                "`output` must not exist yet, unless overwrite is true (--overwrite). "
                f"Received: output={output}"
            )
        if output.exists() and not output.is_dir():
            raise NotADirectoryError(
                f"`output` must be a folder. Received a file: output={output}"
            )
        return output
