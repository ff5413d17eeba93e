"""Vocabularies of bytes, drawn texts, and the published tokenizer of byte-level BPE."""

import functools
from collections.abc import Sequence
from typing import Any

import pytest
import tensorflow as tf
from hypothesis import strategies as st

from kbert.text.byte_level_bpe.byte_level_bpe import ByteLevelBPE
from kbert.text.byte_level_bpe.training import SPECIALS, train_byte_level_bpe
from kbert.text.vocabulary import ROBERTA_TOKENS, Vocabulary, byte_characters
from tests.text.subword_lines import mixed_lines

# White space of several kinds, contractions and what is none, letters, numbers and marks of several
# scripts, controls, and tokens typed in a text.
PARTS = (
    *"a b s t A 'S 's 't 're 've 'm 'll 'd 'r ' '' 1 23 . !? -- _ \" ) é ß ﬁ ñ Σ ж 日 本語 ก".split(),
    *("٣", "½", "²", "Ⅻ", "\u0301", "\u200d", "😀", "👩\u200d👧", "𝔄", "\U00010d40", "\ufffd"),
    *("Ġ", "Ċ", "ำ"),
    *(" ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", "\x0b", "\x0c", "\x85", "\xa0", "\u2028"),
    *("\u3000", "\u200b", "\x00", "\x1c", "\x7f", "<mask>", "<s>", "</s>", "<pad>", "<unk>", "<ma"),
    *("the", " the", "The", "reading", " newspaper", "kitchen", " Tisch", "aaaa", "....", "thethe"),
)
texts = st.one_of(
    st.lists(st.sampled_from(PARTS), max_size=12).map("".join),
    st.text(st.characters(exclude_categories=["Cs"])),
)


def vocabulary_of(merges: Sequence[tuple[str, str]]) -> Vocabulary:
    """The special tokens, the bytes, and what the merges make."""
    made = dict.fromkeys(left + right for left, right in merges)
    return Vocabulary([*SPECIALS, *byte_characters(), *made], ROBERTA_TOKENS)


@functools.cache
def trained() -> tuple[Vocabulary, list[tuple[str, str]]]:
    """A small vocabulary in several languages, and its merges."""
    pytest.importorskip("tokenizers")
    return train_byte_level_bpe(mixed_lines(), 1000)


@functools.cache
def tokenizer(**settings: bool) -> ByteLevelBPE:
    """The tokenizer of the small vocabulary."""
    return ByteLevelBPE(*trained(), **settings)


def published(bpe: ByteLevelBPE) -> Any:
    """The same tokenizer of Hugging Face, put together as RoBERTa's is."""
    tokenizers = pytest.importorskip("tokenizers")
    ids = {token: number for number, token in enumerate(bpe.vocabulary.tokens)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(ids, [tuple(m) for m in bpe.merges]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(bpe.add_prefix_space)
    made.post_processor = tokenizers.processors.RobertaProcessing(
        ("</s>", ids["</s>"]), ("<s>", ids["<s>"]), bpe.trim_offsets, bpe.add_prefix_space
    )
    if bpe.special_tokens_in_text:
        others = [name for name in SPECIALS if name != "<mask>"]
        mask = tokenizers.AddedToken("<mask>", lstrip=True, special=True)
        made.add_special_tokens([*others, mask])
    return made


def check(bpe: ByteLevelBPE, peer: Any, rows: Sequence[str | bytes]) -> None:
    """Holds ids and offsets of the rows to the published ones; bytes are decoded first."""
    raw = [row.encode() if isinstance(row, str) else row for row in rows]
    found = bpe.tokenize_with_offsets(tf.constant(raw, tf.string))
    ids = bpe.tokenize(tf.constant(raw, tf.string)).to_list()
    assert ids == found.token_ids.to_list()
    start, end, start_byte, end_byte = (
        one.to_list() for one in (found.start, found.end, found.start_byte, found.end_byte)
    )
    decoded = [row.decode("utf-8", "replace") for row in raw]
    for index, encoding in enumerate(peer.encode_batch(decoded, add_special_tokens=False)):
        assert ids[index] == encoding.ids, raw[index]
        places = list(zip(start[index], end[index], strict=True))
        assert places == encoding.offsets, (raw[index], encoding.tokens)
        for a, b, c, d in zip(
            start[index], end[index], start_byte[index], end_byte[index], strict=True
        ):
            assert raw[index][c:d].decode("utf-8", "replace") == decoded[index][a:b]
            assert raw[index][:c].decode("utf-8", "replace") == decoded[index][:a]
