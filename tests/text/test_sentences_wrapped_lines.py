"""Lines broken to fit a page: by hand, and beside Python's textwrap, which breaks them greedily."""

import random
import textwrap

import pytest

from kbert.text.sentences import joined_lines

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def prose(words, seed):
    """Words of two to nine letters, with a full stop here and there."""
    draw = random.Random(seed)
    made = ["".join(draw.choices(LETTERS, k=draw.randint(2, 9))) for _ in range(words)]
    return " ".join(word + draw.choice(["", "", "", "", "", "."]) for word in made)


@pytest.mark.parametrize("width", [50, 72, 90])
@pytest.mark.parametrize("words", [25, 60, 400])
def test_what_textwrap_broke_is_joined(width, words):
    text = prose(words, seed=width + words)
    wrapped = textwrap.fill(text, width)
    assert wrapped.count("\n") >= 1
    assert joined_lines(wrapped) == text


def test_paragraphs_stay_apart():
    """Between them blank lines, or an indented first line; a short last line ends one, too."""
    texts = [prose(200, seed) for seed in range(3)]
    wrapped = [textwrap.fill(text, 70) for text in texts]
    assert joined_lines("\n\n".join(wrapped)) == "\n\n".join(texts)
    indented = "\n".join(textwrap.fill(text, 70, initial_indent="   ") for text in texts)
    assert joined_lines(indented) == "\n".join(f"   {text}" for text in texts)
    heading = joined_lines(f"CHAPTER I\n{wrapped[0]}")
    assert heading == f"CHAPTER I\n{texts[0]}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "one line",
        "\n\n",
        "A sentence a line.\nAnother one, which is somewhat longer than that.\nShort.\n",
        # Sentences of like length, but each is finished.
        "This line has forty-two characters, too. Yes.\nThis line has forty-one characters, too.\n",
        # A paragraph a line, and a poem: too long and too short for a page.
        "\n".join([prose(40, seed) for seed in range(20)]),
        "\n".join([prose(3, seed) for seed in range(20)]),
        # One sentence a line, without full stops, of all lengths.
        "\n".join([prose(4 + seed % 11, seed).replace(".", "") for seed in range(40)]),
    ],
)
def test_other_lines_stay(text):
    assert joined_lines(text) == text


def test_no_word_is_lost():
    text = "\n".join(textwrap.fill(prose(50, seed), 60) for seed in range(10)) + "\n\nThe end"
    assert joined_lines(text).split() == text.split()
