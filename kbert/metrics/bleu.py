"""Metrics of translations and captions: BLEU and chrF by sacreBLEU, with its signatures.

Sources: Papineni et al., "BLEU" (2002); Popović, "chrF" (2015); Post, "A call for clarity in
reporting BLEU scores" (2018), section 3, on signatures.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from kbert.metrics.rouge import rouge_l

References = Sequence[str] | Sequence[Sequence[str]]


def translation_metrics(hypotheses: Sequence[str], references: References) -> dict[str, Any]:
    """Returns BLEU and chrF2 of plain texts, as a JSON-serializable dict.

    BLEU is cased and tokenises as mteval-v13a does; both are sacreBLEU's defaults. `hypotheses` are
    the translations, one string per sentence, not tokenised, "" for none; `references` have for
    each of them the reference translation, or a list of several.

    Returns:
        "bleu" and "chrf", over the whole corpus, from 0 to 100; "bleu_signature" and
        "chrf_signature", as sacreBLEU prints them: report them beside the scores.
    """
    streams = _streams(hypotheses, references)
    metrics = _sacrebleu()
    # `force` only silences a warning where many sentences end in " .".
    return {
        **_score("bleu", metrics.BLEU(tokenize="13a", force=True), hypotheses, streams),
        **_score("chrf", metrics.CHRF(), hypotheses, streams),
    }


def caption_metrics(hypotheses: Sequence[str], references: References) -> dict[str, Any]:
    """Returns BLEU of 1 to 4 tokens, chrF2 and ROUGE-L of captions, as a JSON-serializable dict.

    All are lower-cased, and tokenise as `translation_metrics` does, which has the arguments.

    Returns:
        "bleu_1" to "bleu_4" and "chrf", over all captions, from 0 to 100; "bleu_4_signature" and
        "chrf_signature", as sacreBLEU prints them; "rouge_l", the mean over captions of the best
        F1 of longest common subsequences over their references, from 0 to 100.
    """
    streams = _streams(hypotheses, references)
    metrics = _sacrebleu()
    found: dict[str, Any] = {}
    for order in range(1, 5):
        bleu = metrics.BLEU(tokenize="13a", lowercase=True, force=True, max_ngram_order=order)
        found |= _score(f"bleu_{order}", bleu, hypotheses, streams)
        if order < 4:
            del found[f"bleu_{order}_signature"]
    found |= _score("chrf", metrics.CHRF(lowercase=True), hypotheses, streams)
    tokenize = metrics.BLEU(tokenize="13a").tokenizer

    def tokens(text: str) -> list[str]:
        return list(tokenize(text.lower().rstrip()).split())

    several = [[tokens(text) for text in _listed(entry)] for entry in references]
    return {**found, "rouge_l": rouge_l([tokens(text) for text in hypotheses], several)}


def tokenized_lowercase_bleu(
    hypotheses: Sequence[str], references: References, language: str
) -> dict[str, Any]:
    """Returns the tokenised lower-cased BLEU of the literature, such as that of Multi30k.

    Both sides are tokenised as Moses does (tokenizer.perl without options), then lower-cased, then
    compared token by token (as multi-bleu.perl -lc does). It is often several points above
    `translation_metrics`, which has the arguments, and comparable with no other kind of BLEU. Moses
    must have rules for the language code of the translations, such as "de".

    Returns:
        "tokenized_lowercase_bleu" from 0 to 100; "tokenized_lowercase_bleu_signature", sacreBLEU's,
        in which "tok:none" means that it did not tokenise; "tokenized_lowercase_bleu_tokenizer",
        the tokenizer used.
    """
    streams = _streams(hypotheses, references)
    metrics, (moses, version) = _sacrebleu(), _moses(language)

    def tokenized(text: str | None) -> str | None:
        # Escapes such as &apos; would stand for one character each, on both sides.
        return None if text is None else moses.tokenize(text, return_str=True, escape=False)

    name = "tokenized_lowercase_bleu"
    bleu = metrics.BLEU(tokenize="none", lowercase=True, force=True)
    own, *others = ([tokenized(text) for text in side] for side in (hypotheses, *streams))
    scores = _score(name, bleu, own, others)
    return {**scores, f"{name}_tokenizer": f"sacremoses {version}, language {language}"}


def _score(name: str, metric: Any, hypotheses: Sequence[Any], streams: Any) -> dict[str, Any]:
    score = float(metric.corpus_score(list(hypotheses), streams).score)
    return {name: score, f"{name}_signature": str(metric.get_signature())}


def _sacrebleu() -> Any:
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise ImportError(
            f"BLEU and chrF need sacrebleu. Install it with `pip install sacrebleu`. ({error})"
        ) from error
    return metrics


def _moses(language: str) -> tuple[Any, str]:
    """Returns the tokenizer and the version of its library."""
    try:
        import sacremoses
        from sacremoses.corpus import NonbreakingPrefixes
    except ImportError as error:
        raise ImportError(
            f"Tokenised BLEU needs sacremoses. Install it with `pip install sacremoses`. ({error})"
        ) from error
    # Moses would treat another code as English, and use a name ("french") for half of its rules.
    known = sorted(set(NonbreakingPrefixes().available_langs.values()))
    if language not in known:
        raise ValueError(
            f"`language` must be one of {', '.join(known)}. Received: language={language!r}"
        )
    return sacremoses.MosesTokenizer(lang=language), sacremoses.__version__


def _streams(hypotheses: Sequence[str], references: References) -> list[list[str | None]]:
    """Returns the references in sacreBLEU's layout: the first of each sentence, the second, ..

    None fills in where a sentence has fewer than others.
    """
    for argument, texts in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(texts, str):
            raise ValueError(f"`{argument}` must be a list of sentences. Received: {texts!r}")
    if len(hypotheses) != len(references) or not len(hypotheses):
        raise ValueError(
            "`hypotheses` and `references` must hold the same sentences, at least one. "
            f"Received: {len(hypotheses)} hypotheses and {len(references)} references"
        )
    each = [_listed(entry) for entry in references]
    for number, (hypothesis, given) in enumerate(zip(hypotheses, each), start=1):
        if not isinstance(hypothesis, str):
            raise ValueError(
                f"`hypotheses` must be strings. Received: {hypothesis!r} in sentence {number}"
            )
        if not given or not all(isinstance(text, str) for text in given):
            raise ValueError(
                "`references` must hold a string, or a list of strings, for each sentence. "
                f"Received: {references[number - 1]!r} in sentence {number}"
            )
    return [list(stream) for stream in zip_longest(*each)]


def _listed(entry: str | Sequence[str]) -> list[str]:
    """Returns the references of one sentence, of which there may be one alone, or none."""
    return [entry] if isinstance(entry, str) else list(entry or ())
