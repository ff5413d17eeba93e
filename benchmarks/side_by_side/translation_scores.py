"""BLEU and chrF of tokenised, lower-cased translations, in the literature's way and sacreBLEU's."""

from collections.abc import Callable
from typing import Any

from sacrebleu.metrics import BLEU
from sacremoses import MosesDetokenizer, MosesDetruecaser, MosesTokenizer, MosesTruecaser

from kbert.metrics.bleu import translation_metrics

_SHOWN = ("bleu", "chrf")


def scores(
    hypotheses: list[str], split: Any, language: str, recase: Callable[[str], str]
) -> dict[str, Any]:
    """The scores of a test set.

    Args:
        hypotheses: tokenised and lower-cased.
        split: has `targets`, tokenised and lower-cased, and `references`, as they were written.
        language: of the translations.
        recase: of `recaser`.
    """
    moses = MosesDetokenizer(lang=language)
    plain, cased = (
        [moses.detokenize(text.split()) for text in texts]
        for texts in (hypotheses, map(recase, hypotheses))
    )
    lowercase = translation_metrics(plain, [text.lower() for text in split.references])
    return {
        **tokenized_bleu(hypotheses, split.targets),
        # As sacreBLEU is usually told: cased, and so after the capitals were restored.
        **translation_metrics(cased, split.references),
        **{f"lowercase_{key}": value for key, value in lowercase.items() if key in _SHOWN},
    }


def tokenized_bleu(hypotheses: list[str], targets: list[str]) -> dict[str, Any]:
    """The BLEU of the literature: between texts that are tokenised and lower-cased already."""
    bleu = BLEU(tokenize="none", force=True)
    found = bleu.corpus_score(hypotheses, [targets])
    return {
        "tokenized_lowercase_bleu": round(found.score, 2),
        "brevity_penalty": round(found.bp, 4),
        "tokenized_lowercase_bleu_signature": str(bleu.get_signature()),
    }


def recaser(references: list[str], language: str) -> Callable[[str], str]:
    """What gives tokenised, lower-cased text capitals, by Moses' rules.

    A word is written as it is most often written within the sentences of `references`, and a
    sentence begins with a capital.

    Args:
        references: translations of the training set, as they were written.
        language: of them.
    """
    tokenizer = MosesTokenizer(lang=language)
    truecaser, first = MosesTruecaser(is_asr=True), MosesDetruecaser()
    truecaser.train([tokenizer.tokenize(text, escape=False) for text in references])
    return lambda text: " ".join(first.detruecase(truecaser.truecase(text, return_str=True)))
