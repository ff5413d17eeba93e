"""Evaluation of a pretrained model on held-out text."""

from pathlib import Path
from typing import Any

from kbert.tasks.pretraining.model import MaskedLanguageModel
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.pretraining.corpus_source import Source, validation_batches


def measure_pretrained(
    folder: Path, corpus: Source, config: PretrainingConfig, steps: int | None = None
) -> dict[str, float]:
    """Evaluates a saved model in float32, in which it is used.

    Args:
        folder: The model's folder.
        corpus: The text, or records.
        config: The options of making examples of it.
        steps: Number of batches to evaluate, the first ones; None for all.

    Returns:
        The losses, single and total, accuracies and perplexity.

    Raises:
        ValueError: The folder is not a pretrained model, or the files are not text or records.
    """
    model = MaskedLanguageModel.from_pretrained(folder, dtype="float32")
    model.compile()
    batches = validation_batches(config, corpus, model.tokenizer, steps)
    measured: dict[str, float] = model.evaluate(batches, verbose=0, return_dict=True)
    return measured


def config_of_model(folder: Path) -> PretrainingConfig:
    """Returns options of making examples for a model without a run.

    Args:
        folder: The model's folder.
    """
    model: Any = MaskedLanguageModel.from_pretrained(folder)
    return PretrainingConfig(
        text=["-"],
        encoder=str(folder),
        output="-",
        objective=model.objective,
        max_sequence_length=model.max_sequence_length,
    )
