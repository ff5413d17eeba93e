"""`PreparationConfig`: all options of preparing pretraining records."""

from dataclasses import dataclass
from pathlib import Path

from kbert.data.pretraining.corpus_cuts import BLOCK_BYTES
from kbert.options.configuration import wrong
from kbert.options.kinds import choice, flag, option, patterns, text, whole
from kbert.options.shared import EXAMPLES, ExampleOptions

_DATA, _OUTPUT = "Data", "Output"
_PATTERN, _TOKENS, _FOLDER = text("a regular expression"), text("a vocab.txt"), text("a folder")


@dataclass(frozen=True)
class PreparationConfig(ExampleOptions):
    """The configuration of preparing pretraining records from plain text.

    Raises:
        ValueError: A value is of the wrong type or out of bounds, or one is missing.
    """

    text: list[str] | None = option(
        None, patterns(), _DATA, "Files of plain text, or patterns, as of kbert pretrain."
    )
    block_bytes: int = option(
        BLOCK_BYTES, whole(16), _DATA, "Bytes read at a time; other blocks have other examples."
    )
    vocabulary: str | None = option(None, _TOKENS, _DATA, "The tokens, one a line.")
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

    def check_output(self) -> Path:
        """Checks whether the output folder may be created, without looking into it; returns it.

        Raises:
            FileExistsError: It exists, and may not be replaced.
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
