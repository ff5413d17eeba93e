"""Checks of the values of a pretraining configuration against each other."""

from typing import Any

from kbert.options.configuration import check_default, wrong
from kbert.tasks.pretraining.objectives import is_causal

# Fixed by the encoder from which a run continues.
_OF_A_NEW_MODEL = (
    *("lowercase", "size", "num_layers", "hidden_dim", "num_heads", "intermediate_dim"),
    "positions",
)
# Fixed when records were prepared.
_OF_TEXT = ("separator", "encoding_errors", "short_share")
_OF_MASKS = ("max_predictions", "masked_share", "whole_words", "ngram")


def check_pretraining(config: Any) -> None:
    """Checks the values of a configuration against each other.

    Args:
        config: A `PretrainingConfig` whose single values have been checked.

    Raises:
        ValueError: Two of them contradict each other, or one is missing.
    """
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
    if is_causal(config.objective):
        check_default(config, _OF_MASKS, f"with objective {config.objective}, which masks nothing")
    if config.validation is None:
        check_default(config, ("validation_steps",), "without validation")
    if config.warmup > config.steps:
        raise wrong("warmup_steps", f"at most {config.steps}, the steps", config.warmup_steps)
    steps = config.steps_per_execution
    if config.save_every % steps:
        raise wrong("save_every", f"a multiple of steps_per_execution={steps}", config.save_every)


def _check_records(config: Any) -> None:
    if config.text is not None:
        raise wrong("text", "left out with records", config.text)
    check_default(config, (*_OF_TEXT, *_OF_MASKS), "with records, whose examples are ready")
    if is_causal(config.objective):
        raise wrong("objective", "mlm or mlm_nsp with records, which are masked", config.objective)
    if config.vocabulary_size is not None:
        expected = "left out with records: vocabulary is what they were made with"
        raise wrong("vocabulary_size", expected, config.vocabulary_size)
