"""Results of `kbert evaluate` for translators."""

from pathlib import Path
from typing import Any

from kbert.data.translation.parallel_text import ParallelText, read_parallel
from kbert.storage.atomic_directory import write_atomically
from kbert.tasks.translation.model import Translator
from kbert.training.config.translation_config import TASK, TranslationConfig
from kbert.training.runs.load_model import load_model
from kbert.training.runs.run_directory import is_run, load_run
from kbert.training.translation.evaluation import measure_translator
from kbert.training.translation.examples import read_table_of_pairs


def evaluate_translation(
    runs: list[Path],
    file: Path | None,
    sides: tuple[Path | None, Path | None],
    language: str | None = None,
    translations: Path | None = None,
) -> dict[str, Any]:
    """Evaluates a translator on sentence pairs.

    Args:
        runs: One run, or a model's folder.
        file: A table of pairs, or tfds:NAME@SPLIT; None with `sides`.
        sides: Two text files instead, of sentences and of their translations.
        language: Target language, for the tokenised lower-cased BLEU; None for the run's own.
        translations: File to write all translations to, one per line; or None.

    Returns:
        Facts about the pairs, and the metrics, as JSON types.

    Raises:
        ValueError: There are several runs, it is not a translator, or the pairs are wrong.
        FileNotFoundError: A file is missing, or the run is not finished.
    """
    if len(runs) > 1:
        raise ValueError(
            "`kbert evaluate` must have one run where the task is translation. "
            f"Received: {', '.join(map(str, runs))}"
        )
    config = load_run(runs[0]).config if is_run(runs[0]) else None
    own: Any = config if getattr(config, "task", None) == TASK else None
    pairs = _read(file, sides, own)
    model = load_model(runs[0])
    if not isinstance(model, Translator):
        raise ValueError(
            "`--source` and `--target` must be given for a translator only. Received: "
            f"{runs[0]}, {type(model).__name__}"
        )
    if language is None and own is not None:
        language = own.target_language
    metrics, found = measure_translator(model, pairs, language)
    result: dict[str, Any] = {
        "models": [str(runs[0])],
        "source": pairs.source,
        "examples": len(pairs),
        "metrics": metrics,
    }
    if translations is not None:
        # A model with a piece for a line break could output one, but one line is one sentence.
        lines = [text.replace("\n", " ") + "\n" for text in found]
        write_atomically(translations, "".join(lines))
        result["translations"] = str(translations)
    return result


def _read(
    file: Path | None, sides: tuple[Path | None, Path | None], config: TranslationConfig | None
) -> ParallelText:
    source, target = sides
    if file is not None:
        return read_table_of_pairs(file, config)
    if source is None or target is None:
        raise ValueError("`--source` and `--target` must be given together.")
    return read_parallel(source, target)
