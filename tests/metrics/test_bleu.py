"""BLEU and chrF of translations. Expected numbers by hand, from the papers' formulas."""

import json
import math

import pytest

from kbert.metrics.bleu import tokenized_lowercase_bleu, translation_metrics

REFERENCE = "the cat sat on the mat near a door"
HYPOTHESIS = "the the cat sat on the mat"
# 7 tokens. "the" occurs three times, in the reference twice: 6/7 unigrams; then 5/6, 4/5, 3/4.
PRECISIONS = (6 / 7) * (5 / 6) * (4 / 5) * (3 / 4)


def test_by_hand_with_brevity_and_clipped_counts():
    metrics = translation_metrics([HYPOTHESIS], [REFERENCE])
    expected = 100 * math.exp(1 - 9 / 7) * PRECISIONS**0.25
    assert metrics["bleu"] == pytest.approx(expected, rel=1e-9)
    json.dumps(metrics)


def test_counts_of_a_corpus_are_added_before_they_are_divided():
    # The second sentence, identical: 9, 8, 7, 6 n-grams more; 16 tokens for 18.
    metrics = translation_metrics([HYPOTHESIS, REFERENCE], [REFERENCE, REFERENCE])
    precisions = (15 / 16) * (13 / 14) * (11 / 12) * (9 / 10)
    expected = 100 * math.exp(1 - 18 / 16) * precisions**0.25
    assert metrics["bleu"] == pytest.approx(expected, rel=1e-9)


def test_identical_is_100():
    texts = ["Ein Mann, der läuft, lacht.", "Wörter: 3,5 Stück!", "日本 語 の 文"]
    metrics = translation_metrics(texts, texts)
    assert metrics["bleu"] == pytest.approx(100.0)
    assert metrics["chrf"] == pytest.approx(100.0)
    # Twelve tokens in Moses' way, and lower-casing loses nothing.
    found = tokenized_lowercase_bleu(texts, [text.upper() for text in texts], "de")
    assert found["tokenized_lowercase_bleu"] == pytest.approx(100.0)


def test_chrf_by_hand():
    # "a" of "ab" is in "ac": precision and recall are 1/2 for one character and 0 for two.
    assert translation_metrics(["ab"], ["ac"])["chrf"] == pytest.approx(25.0)
    assert translation_metrics(["ab"], ["cd"])["chrf"] == 0.0


def test_several_references():
    # The reference of the nearest length counts for brevity, and every one for n-grams.
    other = "the dog sat on the mat there"
    metrics = translation_metrics([HYPOTHESIS], [[REFERENCE, other]])
    assert metrics["bleu"] == pytest.approx(100 * PRECISIONS**0.25, rel=1e-9)
    assert "nrefs:2" in metrics["bleu_signature"]
    assert "nrefs:2" in metrics["chrf_signature"]
    mixed = translation_metrics([HYPOTHESIS, REFERENCE], [(REFERENCE, other), REFERENCE])
    precisions = (15 / 16) * (13 / 14) * (11 / 12) * (9 / 10)
    assert mixed["bleu"] == pytest.approx(100 * precisions**0.25, rel=1e-9)  # 16 for 7 + 9
    assert "nrefs:var" in mixed["bleu_signature"]


def test_signatures_say_what_was_counted():
    metrics = translation_metrics([HYPOTHESIS], [REFERENCE])
    for part in ("nrefs:1", "case:mixed", "tok:13a", "smooth:exp", "version:"):
        assert part in metrics["bleu_signature"]
    for part in ("nrefs:1", "case:mixed", "nc:6", "nw:0", "version:"):
        assert part in metrics["chrf_signature"]
    found = tokenized_lowercase_bleu([HYPOTHESIS], [REFERENCE], "en")
    for part in ("nrefs:1", "case:lc", "tok:none", "version:"):
        assert part in found["tokenized_lowercase_bleu_signature"]
    assert found["tokenized_lowercase_bleu_tokenizer"].startswith("sacremoses ")
    assert found["tokenized_lowercase_bleu_tokenizer"].endswith(", language en")


def test_case_counts_in_one_and_not_in_the_other():
    upper = HYPOTHESIS.replace("cat", "Cat")
    expected = 100 * math.exp(1 - 9 / 7) * PRECISIONS**0.25
    assert translation_metrics([upper], [REFERENCE])["bleu"] < expected - 5
    found = tokenized_lowercase_bleu([upper], [REFERENCE], "en")
    assert found["tokenized_lowercase_bleu"] == pytest.approx(expected, rel=1e-9)


def test_moses_splits_as_its_language_does():
    # English: "don 't", 12 tokens. Without "'t" all 11 words are right, and n-grams over the gap
    # are not: 9/10, 7/9, 5/8.
    references = ["We all said they really don't know that man here."]
    found = tokenized_lowercase_bleu([references[0].replace("'t", "")], references, "en")
    expected = 100 * math.exp(1 - 12 / 11) * ((9 / 10) * (7 / 9) * (5 / 8)) ** 0.25
    assert found["tokenized_lowercase_bleu"] == pytest.approx(expected, rel=1e-9)
    # French: "l' eau", 9 tokens, 8 without "l'". By English rules "'eau" would not be "eau".
    references = ["Il boit de l'eau ici ce soir."]
    hypotheses = ["Il boit de eau ici ce soir."]
    found = tokenized_lowercase_bleu(hypotheses, references, "fr")
    expected = 100 * math.exp(1 - 9 / 8) * ((6 / 7) * (4 / 6) * (2 / 5)) ** 0.25
    assert found["tokenized_lowercase_bleu"] == pytest.approx(expected, rel=1e-9)
    english = tokenized_lowercase_bleu(hypotheses, references, "en")
    assert english["tokenized_lowercase_bleu"] < expected - 5


def test_empty_hypotheses():
    metrics = translation_metrics(["", ""], [REFERENCE, REFERENCE])
    assert (metrics["bleu"], metrics["chrf"]) == (0.0, 0.0)
    found = tokenized_lowercase_bleu([""], [REFERENCE], "en")
    assert found["tokenized_lowercase_bleu"] == 0.0
    # Beside a perfect one only brevity is punished: 9 tokens for 18.
    metrics = translation_metrics(["", REFERENCE], [REFERENCE, REFERENCE])
    assert metrics["bleu"] == pytest.approx(100 * math.exp(1 - 18 / 9), rel=1e-9)
    # An empty reference is a reference of no tokens.
    metrics = translation_metrics(["", REFERENCE], ["", REFERENCE])
    assert metrics["bleu"] == pytest.approx(100.0)


def test_sentences_that_look_tokenised_give_no_warning(caplog):
    texts = ["a sentence that ends ."] * 120
    translation_metrics(texts, texts)
    assert not caplog.records


@pytest.mark.parametrize(
    "hypotheses, references, message",
    [
        ([], [], r"same sentences, at least one\. Received: 0 hypotheses and 0 references"),
        (["a", "b"], ["a"], r"Received: 2 hypotheses and 1 references"),
        ("a", ["a"], r"`hypotheses` must be a list of sentences\. Received: 'a'"),
        (["a"], "a", r"`references` must be a list of sentences\. Received: 'a'"),
        (["a", None], ["a", "b"], r"`hypotheses` must be strings\. Received: None in sentence 2"),
        (["a", "b"], ["a", []], r"`references` must hold a string.* Received: \[\] in sentence 2"),
        (["a"], [None], r"`references` must hold .* Received: None in sentence 1"),
        (["a"], [["a", 3]], r"`references` must hold .* Received: \['a', 3\] in sentence 1"),
    ],
)
def test_errors(hypotheses, references, message):
    with pytest.raises(ValueError, match=message):
        translation_metrics(hypotheses, references)
    with pytest.raises(ValueError, match=message):
        tokenized_lowercase_bleu(hypotheses, references, "en")


@pytest.mark.parametrize("language", ["german", "xx", ""])
def test_unknown_language(language):
    message = rf"`language` must be one of .*\bde\b.* Received: language='{language}'"
    with pytest.raises(ValueError, match=message):
        tokenized_lowercase_bleu(["a"], ["a"], language)
