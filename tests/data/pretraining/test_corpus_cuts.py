"""Pieces of a text: by hand, and the same whether it is read through or at a place."""

import io
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.pretraining.corpus_cuts import (
    count_pieces,
    cut_place,
    document_end,
    piece_at,
    pieces,
)

BLANK = document_end(None)


def parts_of(file, size):
    return iter(lambda: file.read(size), b"")


def cut(content, size, end=BLANK):
    found = list(pieces(parts_of(io.BytesIO(content), size), size, end))
    assert [piece.number for piece in found] == list(range(len(found)))
    return [(piece.content, piece.is_cut) for piece in found]


@pytest.mark.parametrize(
    "window, place, is_inside",
    [
        # The first end of a document, in preference to any line's end before it.
        (b"ab\ncd\n\nef\n\ngh", 7, False),
        (b"ab\n \t\r\ncd", 7, False),
        # Else a line's end, a sentence's, a word's.
        (b"ab cd.\nef gh", 7, True),
        (b"ab cd.  ef gh", 8, True),
        ("ab\u3002cd ef".encode(), 5, True),
        (b"ab 3.14", 3, True),
        # Nothing: the first beginning of a character.
        (b"abcdef", 0, True),
        ("\u00e4".encode()[1:] + "\u00e4\u00f6".encode(), 1, True),
        (b"", 0, True),
        # What may be a part of a line only, or the end of what is known, is not taken.
        (b"\nab cd", 1, True),
        (b"ab cd\n", 3, True),
    ],
)
def test_where_to_cut_by_hand(window, place, is_inside):
    assert cut_place(window, BLANK) == (place, is_inside)


def test_another_separator():
    end = document_end("==== .* ====")
    window = b"ef ====\n\nab\n==== x ====\r\ncd\n=== y ===\n"
    assert cut_place(window, end) == (25, False)
    # A line of ASCII's file separator ends a document, whatever else does.
    assert cut_place(b"ab\n\n\x1c\ncd ef", end) == (6, False)
    assert cut_place(b"ab\n\x1c\ncd ef", BLANK) == (5, False)
    # So does a line behind a file's byte order mark.
    text = "a\n\x1c\n\ufeff== b ==\nc"
    assert document_end("== . ==").sub("|", text) == "a\n||c"
    with pytest.raises(ValueError, match=r"`separator` must be a regular .*: separator='\('"):
        document_end("(")


def test_pieces_by_hand():
    """Cuts behind 10 and 30 between documents; from 20 to 30 there is nothing but letters."""
    content = b"aaaa\n\nbbbb\n\ncccc\n\ndddddddddddddddddd\n\nee"
    assert cut(content, 10) == [
        (b"aaaa\n\nbbbb\n\n", False),
        (b"cccc\n\ndd", True),
        (b"dddddddddddddddd\n\n", True),
        (b"ee", False),
    ]
    # What is left behind 30 is less than half a piece, and stays with the one before.
    assert cut(content[:34], 10)[-1] == (b"dddddddddddddd", True)
    assert [len(cut(b"a" * size, 10)) for size in (0, 14, 15, 24, 25)] == [1, 1, 2, 2, 3]


words = st.sampled_from(
    [b"a", b"bb.", b" ", b"\n", b"\n\n", b"\n \n", "\u00e4\u6c34".encode(), b"x" * 9]
)


@given(st.lists(words, max_size=60).map(b"".join), st.integers(16, 40))
def test_nothing_is_lost_and_any_piece_is_found_at_its_place(content, size):
    found = cut(content, size)
    assert b"".join(piece for piece, _ in found) == content
    assert len(found) == count_pieces(len(content), size)
    assert all(2 * len(piece) < 5 * size for piece, _ in found)
    for number, piece in enumerate(found):
        single = piece_at(io.BytesIO(content), number, len(content), size, BLANK)
        assert (single.content, single.is_cut) == piece
        single.content.decode()  # no character is cut


class Endless(io.RawIOBase):
    """Documents of a hundred bytes, so many bytes in all, made while they are read."""

    def __init__(self, size):
        super().__init__()
        self.left = size

    def read(self, size=-1):
        count = min(size, self.left)
        self.left -= count
        return (b"word " * 19 + b"end\n\n") * (count // 100) + b"x" * (count % 100)


def test_memory_is_bounded_by_a_piece():
    """Of 64 MB in pieces of 1 MB never more than 8 MB are held."""
    tracemalloc.start()
    try:
        parts = parts_of(Endless(64 << 20), 1 << 20)
        total = sum(len(piece.content) for piece in pieces(parts, 1 << 20, BLANK))
        assert total == 64 << 20
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
