"""Metrics of captions by hand."""

import math

import pytest

from kbert.metrics.bleu import caption_metrics


def test_bleu_of_one_to_four_tokens_by_hand():
    """One caption of five tokens, two references; letters' case does not count."""
    found = caption_metrics(
        ["A red star on blue"], [["a RED star above blue", "one star on a blue ground"]]
    )
    # 1: all five of a, red, star, on, blue are in a reference, each once. 2: a red, red star, star
    # on. 3: a red star. 4: none, which sacreBLEU smooths to half of one.
    shares = [5 / 5, 3 / 4, 1 / 3, (1 / 2) / 2]
    for order in range(1, 5):
        mean = math.exp(sum(math.log(share) for share in shares[:order]) / order)
        assert found[f"bleu_{order}"] == pytest.approx(100 * mean, rel=1e-6), order
    assert set(found) == {
        *("bleu_1", "bleu_2", "bleu_3", "bleu_4", "bleu_4_signature"),
        *("chrf", "chrf_signature", "rouge_l"),
    }
    assert "case:lc" in found["bleu_4_signature"] and "tok:13a" in found["bleu_4_signature"]
    assert "case:lc" in found["chrf_signature"]
    # "a red star blue" of five tokens on both sides: P = R = 4/5.
    assert found["rouge_l"] == pytest.approx(80.0)


def test_rouge_l_takes_the_tokens_of_bleu():
    """Punctuation is a token, case does not count: a, red, star, "." of 4 and of 5 tokens."""
    found = caption_metrics(["A red star."], ["a RED star here ."])
    assert found["rouge_l"] == pytest.approx(100 * 2 * 1 * (4 / 5) / (1 + 4 / 5))
    # The second image has no caption.
    found = caption_metrics(["A red star.", ""], [["x", "a RED star here ."], ["a", ""]])
    assert found["rouge_l"] == pytest.approx(100 * (8 / 9 + 0) / 2)
    assert caption_metrics(["a"], [[""]])["rouge_l"] == 0.0


def test_brevity_is_by_the_nearest_reference():
    """Three tokens beside references of four and nine: exp(1 - 4/3)."""
    references = ["a red star here", "a red star on a very blue ground indeed"]
    found = caption_metrics(["a red star"], [references])
    assert found["bleu_1"] == pytest.approx(100 * math.exp(1 - 4 / 3))


def test_a_perfect_set_and_numbers_of_references_that_differ():
    texts = ["a red star on a blue ground", "two green circles beside a square"]
    found = caption_metrics(texts, [[texts[0], "something"], [texts[1]]])
    for name in ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "chrf", "rouge_l"):
        assert found[name] == pytest.approx(100.0)
    nothing = caption_metrics(["", ""], [["a"], ["b"]])
    assert nothing["bleu_1"] == nothing["chrf"] == nothing["rouge_l"] == 0.0


def test_what_does_not_fit():
    with pytest.raises(ValueError, match="must hold the same sentences"):
        caption_metrics(["a"], [["a"], ["b"]])
    with pytest.raises(ValueError, match="`references` must hold a string, or a list of strings"):
        caption_metrics(["a"], [[]])
