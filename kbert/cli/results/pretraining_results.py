"""Results of `kbert evaluate` for pretrained models."""

from pathlib import Path
from typing import Any

from kbert.data.pretraining.corpus import Corpus
from kbert.training.config.pretraining_config import TASK
from kbert.training.pretraining.model import config_of_model, measure_pretrained
from kbert.training.runs.run_directory import is_run, load_run


def evaluate_pretraining(runs: list[Path], file: Path) -> dict[str, Any]:
    """Evaluates a pretrained model on plain text.

    Examples and masks are drawn with the run's seed, the same ones each time.

    Args:
        runs: One run, or a model's folder.
        file: The text; see `kbert.data.pretraining.corpus`.

    Returns:
        The metrics, as JSON types.

    Raises:
        ValueError: There are several runs, or the file is not text.
        FileNotFoundError: The file is missing, or the run is not finished.
    """
    if len(runs) > 1:
        raise ValueError(
            "`kbert evaluate` must have one run where the task is pretraining. "
            f"Received: {', '.join(map(str, runs))}"
        )
    folder, config = runs[0], None
    if is_run(folder):
        run = load_run(folder)
        folder, config = run.model_directory, run.config
    is_pretraining = getattr(config, "task", None) == TASK
    own: Any = config if is_pretraining else config_of_model(folder)
    corpus = Corpus([file], own.separator, encoding_errors=own.encoding_errors)
    metrics = measure_pretrained(folder, corpus, own)
    return {"models": [str(runs[0])], "source": str(corpus), "metrics": metrics}
