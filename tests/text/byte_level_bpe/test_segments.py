"""Special tokens that are typed in texts, by hand."""

import tensorflow as tf

from kbert.text.byte_level_bpe.segments import NOT_SPECIAL, segments_of, whole_texts
from tests.text.byte_level_bpe_cases import vocabulary_of

VOCABULARY = vocabulary_of([])
MASK, SEP = VOCABULARY.mask_id, VOCABULARY.sep_id


def test_whole_texts() -> None:
    segments = whole_texts(tf.constant(["a <mask>", ""]))
    assert segments.strings.numpy().tolist() == [b"a <mask>", b""]
    assert segments.special_ids.numpy().tolist() == [NOT_SPECIAL] * 2
    assert segments.row_splits.numpy().tolist() == [0, 1, 2]


def test_segments_by_hand() -> None:
    """White space belongs to the mask token after it, and to no other one."""
    texts = ["a \u3000\n<mask> b", "", " </s></s>c<mask", b"\xff <mask>"]
    segments = segments_of(tf.constant(texts), VOCABULARY)
    assert segments.strings.numpy().tolist() == [
        *("a".encode(), " \u3000\n<mask>".encode(), b" b"),
        *(b" ", b"</s>", b"</s>", b"c<mask"),
        *(b"\xff", b" <mask>"),
    ]
    no = NOT_SPECIAL
    assert segments.special_ids.numpy().tolist() == [no, MASK, no, no, SEP, SEP, no, no, MASK]
    assert segments.row_splits.numpy().tolist() == [0, 3, 3, 7, 9]


def test_control_characters_are_kept() -> None:
    """U+0000 ends a text for tensorflow-text, so it is written otherwise in between."""
    texts = ["\x00<s>\x01\x00\x02</s>\x00\x03", "\x01\x03 \x01\x02"]
    segments = segments_of(tf.constant(texts), VOCABULARY)
    assert segments.strings.numpy().tolist() == [
        *(b"\x00", b"<s>", b"\x01\x00\x02", b"</s>", b"\x00\x03"),
        b"\x01\x03 \x01\x02",
    ]
