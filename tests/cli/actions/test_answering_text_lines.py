import io

import pytest

from kbert.cli.actions.answering import read_batches


def read(content: bytes, batch_size: int = 2):
    def numbered(line, number):
        return (line, str(number))

    return list(read_batches(io.BytesIO(content), numbered, batch_size))


def test_lines_come_in_order_in_batches():
    assert read(b"a\nb\r\nc") == [[("a", "1"), ("b", "2")], [("c", "3")]]


def test_only_line_ends_end_a_line():
    # str.splitlines would also split at U+2028, U+0085 and the form feed.
    text = "a\u2028b\u0085c\x0cd\re"
    assert read(text.encode() + b"\n") == [[(text, "1")]]


def test_empty_lines_are_texts_and_nothing_is_nothing():
    assert read(b"\n\nx") == [[("", "1"), ("", "2")], [("x", "3")]]
    assert read(b"") == []


def test_a_byte_order_mark_is_left_out():
    assert read(b"\xef\xbb\xbfa\n") == [[("a", "1")]]


def test_the_stream_is_read_no_further_than_needed():
    class Endless(io.RawIOBase):
        lines = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.lines += 1
            return b"x\n"

    stream = Endless()
    batches = read_batches(stream, lambda line, number: (line,), 3)
    assert next(batches) == [("x",)] * 3 and stream.lines == 3


def test_what_is_no_utf_8_is_named():
    with pytest.raises(ValueError, match="stdin, line 2: the text must be UTF-8. Received: byte"):
        read(b"a\nb\xff\n")
    with pytest.raises(ValueError, match=r"position 0 \(an image is given by the name of its file"):
        read(b"\xff\xd8\xff\xe0")  # the content of a JPEG file
