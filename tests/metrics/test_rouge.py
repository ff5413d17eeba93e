"""ROUGE-L by hand: P and R are the shares of the longest common subsequence, F = 2PR / (P + R)."""

import pytest

from kbert.metrics.rouge import rouge_l


def tokens(text: str) -> list[str]:
    return text.split()


# Hypothesis, reference, the shares of the subsequence by hand.
PAIRS = [
    ("a red star on blue", "a red star above blue", 4 / 5, 4 / 5),
    # Lin 2004, section 3.1: S2 and S3 beside S1.
    ("police kill the gunman", "police killed the gunman", 3 / 4, 3 / 4),
    ("the gunman kill police", "police killed the gunman", 2 / 4, 2 / 4),
    # More precise than complete, and the other way round: F1 does not tell them apart.
    ("a b", "a x b y z", 2 / 2, 2 / 5),
    ("a x b y z", "a b", 2 / 5, 2 / 2),
    # A token counts once for each that it meets.
    ("a a a", "a b", 1 / 3, 1 / 2),
]


@pytest.mark.parametrize("hypothesis, reference, precision, recall", PAIRS)
def test_one_pair(hypothesis: str, reference: str, precision: float, recall: float):
    wanted = 100 * 2 * precision * recall / (precision + recall)
    assert rouge_l([tokens(hypothesis)], [[tokens(reference)]]) == pytest.approx(wanted)


def test_the_best_reference_of_each_text_and_the_mean_of_texts():
    several = [[tokens("x"), tokens("a b c d"), tokens("b")], [tokens("c")], [tokens("y")]]
    found = rouge_l([tokens("a b"), tokens("c"), tokens("z")], several)
    # 2 * 1 * (2/4) / (1 + 2/4) = 2/3, and 2 * (1/2) * 1 / (1/2 + 1) = 2/3: then 1 and 0.
    assert found == pytest.approx(100 * (2 / 3 + 1 + 0) / 3)
    # P 1/2 and R 1 of one reference, P 1 and R 1/5 of the other: the best of each would give 1.
    two = [tokens("a"), tokens("a b c d e f g h i j")]
    assert rouge_l([tokens("a b")], [two]) == pytest.approx(100 * 2 / 3)


def test_texts_without_tokens():
    assert rouge_l([[]], [[["a"]]]) == 0.0
    assert rouge_l([["a"]], [[[]]]) == 0.0
    assert rouge_l([[]], [[[]]]) == 0.0
    # A reference that is empty does not harm the other one, on either side of it.
    assert rouge_l([["a"], ["b"]], [[[], ["a"]], [["b"], []]]) == pytest.approx(100.0)
