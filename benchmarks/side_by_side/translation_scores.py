"""BLEU and chrF of tokenised, lower-cased translations, in the literature's way and sacreBLEU's."""

from typing import Any

from sacrebleu.metrics import BLEU
from sacremoses import MosesDetokenizer

from kbert.metrics.bleu import translation_metrics

_SHOWN = ("bleu", "chrf")


def scores(hypotheses: list[str], split: Any, language: str) -> dict[str, Any]:
    """The scores of a test set.

    Args:
        hypotheses: tokenised and lower-cased.
        split: has `targets`, tokenised and lower-cased, and `references`, as they were written.
        language: of the translations.
    """
    tokens = BLEU(tokenize="none", force=True)
    found = tokens.corpus_score(hypotheses, [split.targets])
    moses = MosesDetokenizer(lang=language)
    plain = [moses.detokenize(text.split()) for text in hypotheses]
    lowercase = translation_metrics(plain, [text.lower() for text in split.references])
    return {
        "tokenized_lowercase_bleu": round(found.score, 2),
        "brevity_penalty": round(found.bp, 4),
        "tokenized_lowercase_bleu_signature": str(tokens.get_signature()),
        # As sacreBLEU is usually told; German nouns have capitals, which such output lacks.
        **translation_metrics(plain, split.references),
        **{f"lowercase_{key}": value for key, value in lowercase.items() if key in _SHOWN},
    }
