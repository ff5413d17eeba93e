"""Blocks as sentences of tokens: by hand, and against the tokenizer one sentence at a time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.pretraining.corpus import Block
from kbert.data.pretraining.examples import BlockTokenizer, TokenizedBlock
from kbert.text.sentences import split_sentences
from kbert.text.wordpiece.wordpiece import WordPiece
from tests.small_pipelines import TEXTS, TOKENIZER, VOCABULARY

TOKENIZE = BlockTokenizer(TOKENIZER)


def tokens_of(block):
    """Documents as lists of sentences as lists of tokens."""
    names = [VOCABULARY.tokens[i] for i in block.token_ids]
    sentences = [names[a:b] for a, b in zip(block.sentences, block.sentences[1:])]
    return [sentences[a:b] for a, b in zip(block.documents, block.documents[1:])]


def block_of(*documents):
    return Block(0, 0, documents, "a test")


def test_by_hand():
    block = TOKENIZE(block_of("A good film. The film! A", "Bad\nvery bad."))
    assert tokens_of(block) == [
        [["a", "good", "film", "."], ["the", "film", "!"], ["a"]],
        [["bad"], ["very", "bad", "."]],
    ]
    assert {x.dtype for x in (block.sentences, block.documents)} == {np.dtype("int64")}
    assert block.token_ids.dtype == "int32"


def test_a_tokenizer_is_compiled_once(caplog):
    # TensorFlow warns of five graphs in ten calls; a run measures held-out text far more often.
    for _ in range(12):
        assert tokens_of(BlockTokenizer(TOKENIZER)(block_of("A film."))) == [[["a", "film", "."]]]
    assert "retracing" not in caplog.text


def test_special_tokens_in_a_text_are_text():
    """A model that fills masks takes typed ones for such; what it learns from must not hold any."""
    filler = WordPiece(VOCABULARY, special_tokens_in_text=True)
    block = block_of("a [MASK] film [SEP].")
    assert VOCABULARY.mask_id in filler.tokenize(block.documents).values
    found, wanted = BlockTokenizer(filler)(block), TOKENIZE(block)
    assert found.token_ids.tolist() == wanted.token_ids.tolist()
    special = {VOCABULARY.mask_id, VOCABULARY.sep_id}
    assert not special & set(found.token_ids.tolist())


def test_lines_of_a_page_are_joined():
    text = "a good film the very bad film " * 8
    lines = [text[i : i + 60].strip() for i in range(0, len(text), 60)]
    assert len(tokens_of(TOKENIZE(block_of("\n".join(lines))))[0]) == 1


def test_what_has_no_tokens_is_left_out():
    block = TOKENIZE(block_of("\0", "a.\n\u200b\nfilm.", "\x01 \x02", "b"))
    assert tokens_of(block) == [[["a", "."], ["film", "."]], [["b"]]]
    for nothing in (block_of(), block_of("\0"), block_of("", "\u200b")):
        block = TOKENIZE(nothing)
        assert tokens_of(block) == [] and len(block.token_ids) == 0
        assert len(block.sentences) == len(block.documents) == 1


texts = st.one_of(
    st.text(max_size=40),
    st.sampled_from([text for text in TEXTS if isinstance(text, str)]),
    st.text(alphabet="aB. \n!\u3002\0", max_size=40),
)


@given(st.lists(texts, max_size=5))
def test_any_documents(documents):
    found = tokens_of(TOKENIZE(block_of(*documents)))
    expected = []
    for text in documents:
        sentences = [TOKENIZER.tokens(sentence) for sentence in split_sentences(text)]
        if any(sentences):
            expected.append([sentence for sentence in sentences if sentence])
    assert found == expected


def test_long_sentences_are_cut_into_like_parts():
    lengths = [3, 10, 4, 25, 1]
    sentences = np.concatenate([[0], np.cumsum(lengths)])
    block = TokenizedBlock(np.arange(43, dtype="int32"), sentences, np.array([0, 2, 5]))
    cut = block.with_sentences_of(4)
    # 10 in three parts and 25 in seven.
    assert np.diff(cut.sentences).tolist() == [3, 3, 3, 4, 4, 3, 4, 3, 4, 3, 4, 4, 1]
    assert cut.documents.tolist() == [0, 4, 13]
    assert cut.token_ids is block.token_ids and block.with_sentences_of(25) is block
