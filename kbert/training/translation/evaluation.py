"""Evaluation of a translator: scores of its translations, and teacher-forced metrics."""

from dataclasses import dataclass
from typing import Any

from kbert.data.translation.parallel_text import ParallelText
from kbert.metrics.bleu import tokenized_lowercase_bleu, translation_metrics
from kbert.tasks.translation.model import Translator
from kbert.training.translation.inputs import PreparedPairs, left_out, prepare_pairs

_FORCED = ("loss", "perplexity", "accuracy")


def teacher_forced(model: Translator, prepared: PreparedPairs) -> dict[str, float]:
    """Measures the prediction of the next piece of reference translations (teacher forcing).

    Args:
        model: The translator.
        prepared: Pairs in its pieces.

    Returns:
        "loss" (with smoothed labels), "perplexity" (per piece) and "accuracy" (of pieces), means
        over all pieces of the translations, end tokens included.
    """
    if not model.compiled:
        model.compile()
    found = model.evaluate(prepared.dataset(model), verbose=0, return_dict=True)
    return {name: float(found[name]) for name in _FORCED}


def translation_scores(
    translations: list[str], references: list[str], language: str | None = None
) -> dict[str, Any]:
    """Scores translations, with the signatures that make scores comparable.

    Args:
        translations: One per sentence.
        references: The reference translations.
        language: Language of the translations, for the tokenised lower-cased BLEU of the
            literature; None omits that.

    Returns:
        Name -> score or signature, see `kbert.metrics.bleu`.

    Raises:
        ValueError: There are no tokenisation rules for the language.
    """
    scores = translation_metrics(translations, references)
    if language is not None:
        scores |= tokenized_lowercase_bleu(translations, references, language)
    return scores


def check_language(language: str) -> None:
    """Checks that there are tokenisation rules for a language, for `translation_scores`.

    Args:
        language: The language.

    Raises:
        ValueError: There are none.
    """
    tokenized_lowercase_bleu(["a"], ["a"], language)


@dataclass(frozen=True)
class MeasuredPairs:
    """Validation pairs of the epochs.

    Attributes:
        prepared: The pairs.
        searcher: Translates them with the weights of the model in training; None for teacher-forced
            metrics only.
    """

    prepared: PreparedPairs
    searcher: Translator | None = None

    def measured(self, model: Translator) -> dict[str, Any]:
        """Returns the metrics of an epoch.

        Args:
            model: The translator in training.
        """
        found: dict[str, Any] = teacher_forced(model, self.prepared)
        if self.searcher is not None:
            text = self.prepared.text
            translations = self.searcher.translations(text.sources)
            found |= translation_scores(translations, text.targets or [])
        return found


def searcher_of(model: Translator, beam_size: int) -> Translator:
    """Returns a translator that shares the weights of another, with another beam search.

    Args:
        model: The other; both share the same variables, also while it trains.
        beam_size: Number of hypotheses of the search.
    """
    return Translator(
        model.transformer,
        model.source_subwords,
        model.target_subwords,
        model.bert_tokenizer,
        beam_size=beam_size,
        length_penalty=model.length_penalty,
        alpha=model.alpha,
        length_ratio=model.length_ratio,
        length_extra=model.length_extra,
        dtype=model.dtype_policy,
        name="searcher",
    )


def measure_translator(
    model: Translator,
    text: ParallelText,
    language: str | None = None,
    features: str | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Evaluates a translator on pairs.

    Args:
        model: The translator.
        text: The pairs. Those with an empty side are translated but not scored.
        language: Language of the translations, for the tokenised lower-cased BLEU, or None.
        features: Folder of BERT's states, or None to compute them in each batch.

    Returns:
        The metrics as JSON types: scores, those of `teacher_forced`, "sentences", "truncated"
        (sources that are longer than the model reads), "left_out"; and the translations of all
        sources in their order.

    Raises:
        ValueError: There are no pairs, or no tokenisation rules for the language.
    """
    prepared = prepare_pairs(model, text, features=features)
    if language is not None:
        check_language(language)  # before the search
    found = model.translation_columns(text.sources)
    translations = [one.decode() for one in found["translation"]]
    kept = prepared.report.kept
    scores = translation_scores(
        [translations[i] for i in kept], prepared.text.targets or [], language
    )
    metrics: dict[str, Any] = {
        **scores,
        **teacher_forced(model, prepared),
        "sentences": len(kept),
        "truncated": int(found["truncated"][kept].sum()),
        "left_out": left_out(prepared.report),
    }
    return metrics, translations
