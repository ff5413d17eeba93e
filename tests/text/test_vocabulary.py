from pathlib import Path

import pytest

from kbert.text.vocabulary import ROBERTA_TOKENS, Vocabulary, byte_characters

TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "##s")


def test_ids_are_places_in_the_list() -> None:
    vocabulary = Vocabulary(TOKENS)
    assert len(vocabulary) == 7
    assert vocabulary.tokens == TOKENS
    assert vocabulary.id_of("##s") == 6
    assert "the" in vocabulary and "The" not in vocabulary
    special = (
        vocabulary.padding_id,
        vocabulary.unknown_id,
        vocabulary.cls_id,
        vocabulary.sep_id,
        vocabulary.mask_id,
    )
    assert special == (0, 1, 2, 3, 4)
    assert vocabulary == Vocabulary(list(TOKENS)) and vocabulary != Vocabulary(TOKENS[:-1])
    assert hash(vocabulary) == hash(Vocabulary(TOKENS))
    assert repr(vocabulary) == "Vocabulary(7 tokens)"


@pytest.mark.parametrize("content", ["{}\n", "{}", "{}\r\n"])
def test_reads_files_with_any_line_end(tmp_path: Path, content: str) -> None:
    path = tmp_path / "vocab.txt"
    separator = "\r\n" if "\r" in content else "\n"
    path.write_bytes(content.format(separator.join(TOKENS)).encode())
    assert Vocabulary.from_file(path).tokens == TOKENS


def test_only_line_ends_end_lines(tmp_path: Path) -> None:
    """U+2028, U+0085 and U+3000 are parts of tokens, not line ends or blanks."""
    path = tmp_path / "vocab.txt"
    tokens = (*TOKENS, "\u2028", "a\u0085b", "\u3000")
    path.write_text("\n".join(tokens) + "\n", encoding="utf-8", newline="")
    assert Vocabulary.from_file(path).tokens == tokens


def test_saves_what_it_reads(tmp_path: Path) -> None:
    Vocabulary(TOKENS).save(tmp_path / "vocab.txt")
    written = (tmp_path / "vocab.txt").read_bytes()
    assert written == b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##s\n"
    assert Vocabulary.from_file(tmp_path / "vocab.txt") == Vocabulary(TOKENS)


@pytest.mark.parametrize("token", ["a\nb", " a", "a\r"])
def test_save_refuses_what_it_could_not_read_back(tmp_path: Path, token: str) -> None:
    with pytest.raises(ValueError, match=r"Tokens written to a file .* Received: tokens\[7\]="):
        Vocabulary((*TOKENS, token)).save(tmp_path / "vocab.txt")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"vocab.txt must have at least one token. Received: none"),
        (b"\n", r"vocab.txt must have at least one token. Received: none"),
        (
            b"[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\na\nthe\n",
            r"vocab.txt must have each token once. Received: 'the' at line 5 and again at line 7",
        ),
        (
            b"[PAD]\n[UNK]\n\n[CLS]\n[SEP]\n",
            r"vocab.txt must have a token on each line. Received: an empty one at line 3",
        ),
        (
            b"[PAD]\n[UNK]\nthe\n",
            r"vocab.txt must have the tokens .* up to line 3, without \[CLS\], \[SEP\]",
        ),
        (b"[PAD]\n\xff\n", r"vocab.txt must be UTF-8. Received: line 2 with the byte 0xff"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Vocabulary.from_file(path)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="must be a vocabulary file. Received: .*none.txt"):
        Vocabulary.from_file(tmp_path / "none.txt")


def test_errors_of_lists_name_the_index() -> None:
    with pytest.raises(ValueError, match=r"`tokens` must have each token once. .* 5 .*index 7"):
        Vocabulary((*TOKENS, "the"))
    with pytest.raises(TypeError, match=r"strings only. Received: 3 at index 7"):
        Vocabulary((*TOKENS, 3))
    for wrong in ("abc", None):
        with pytest.raises(TypeError, match=f"^`tokens` must be a list of .* Received: {wrong!r}$"):
            Vocabulary(wrong)
    with pytest.raises(TypeError, match="^`path` must be a vocabulary file. Received: path=3$"):
        Vocabulary.from_file(3)
    with pytest.raises(KeyError, match=r"vocabulary of 7. Received: token='nope'"):
        Vocabulary(TOKENS).id_of("nope")
    with pytest.raises(KeyError, match=r"Received: token='\[MASK\]'"):
        _ = Vocabulary(TOKENS[:4]).mask_id


def test_special_tokens_of_roberta() -> None:
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "\u0120the", "s", "\u00c3\u00a4", "\u00c3", "<mask>"]
    vocabulary = Vocabulary(tokens, ROBERTA_TOKENS)
    ids = (vocabulary.cls_id, vocabulary.padding_id, vocabulary.sep_id, vocabulary.unknown_id)
    assert ids == (0, 1, 2, 3) and vocabulary.mask_id == 8
    assert [t for t in tokens if vocabulary.continues_word(t)] == tokens[5:8]
    texts = [vocabulary.text_of(token) for token in tokens[3:]]
    assert texts == ["<unk>", " the", "s", "\u00e4", "\ufffd", "<mask>"]
    assert vocabulary != Vocabulary([*TOKENS, *tokens]) and hash(vocabulary) == hash(tuple(tokens))
    with pytest.raises(ValueError, match=r"must have the tokens <unk>, <s>, </s>, <pad>\. .*<s>"):
        Vocabulary(tokens[1:], ROBERTA_TOKENS)


def test_tokens_of_wordpiece_as_text() -> None:
    vocabulary = Vocabulary(TOKENS)
    assert [vocabulary.text_of(token) for token in ("the", "##s", "[SEP]")] == ["the", "s", "[SEP]"]
    assert vocabulary.continues_word("##s") and not vocabulary.continues_word("the")
    assert vocabulary.has_mask and not Vocabulary(TOKENS[:4]).has_mask


def test_characters_of_bytes_are_those_of_gpt2() -> None:
    """The published table: printable Latin-1 as it is, the other 68 from U+0100 on."""
    characters = byte_characters()
    assert len(set(characters)) == 256
    assert characters[0x21:0x7F] == tuple(map(chr, range(0x21, 0x7F)))
    shown = {0: "\u0100", 0x0A: "\u010a", 0x20: "\u0120", 0x7F: "\u0121", 0xAD: "\u0143"}
    assert {byte: characters[byte] for byte in shown} == shown
