"""Blocks of documents: by hand, for any number of workers, and files that are no text."""

import logging
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.pretraining.corpus import Corpus
from tests.data.small_corpora import documents, text_of, written


def names(blocks):
    return [(block.run, block.number) for block in blocks]


def test_documents_by_hand(tmp_path):
    text = "\ufeffOne.\nTwo.\n\n \t\r\nThree.\r\nFour.\r\n\r\n\n  Five.\n\n\n"
    (block,) = Corpus([written(tmp_path / "a.txt", text)]).blocks()
    assert block.documents == ("One.\nTwo.", "Three.\r\nFour.\r", "  Five.")
    assert (block.run, block.number) == (0, 0) and block.source.endswith("a.txt")


def test_another_separator(tmp_path):
    text = "==== a ====\nOne.\n\nTwo.\n==== b ====\n\nThree.\n"
    for separator in ("==== .* ====", "(=)+ (a|b) (=)+"):
        (block,) = Corpus([written(tmp_path / "a.txt", text)], separator).blocks()
        assert block.documents == ("One.\n\nTwo.", "Three.")


@pytest.mark.parametrize("separator", [None, "==="])
def test_small_files_share_a_block_and_no_document(tmp_path, separator):
    paths = [written(tmp_path / f"{i}.txt{'.gz' * (i % 2)}", f"Text {i}.") for i in range(5)]
    corpus = Corpus(paths, separator)
    (block,) = corpus.blocks()
    assert block.documents == tuple(f"Text {i}." for i in range(5))
    assert block.source.endswith("0.txt and 4 more") and str(corpus).endswith("and 2 more")


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_long_files_are_cut_between_documents(tmp_path, suffix):
    made = documents(200)
    text = text_of(made)
    corpus = Corpus([written(tmp_path / f"a{suffix}", text)], block_bytes=4096)
    blocks = list(corpus.blocks())
    assert len(blocks) == round(len(text) / 4096)
    found = [document for block in blocks for document in block.documents]
    assert found == ["\n".join(document) for document in made]


def test_gzip_makes_no_difference(tmp_path):
    text = text_of(documents(100))
    plain, zipped = (
        list(Corpus([written(tmp_path / name, text)], block_bytes=2048).blocks())
        for name in ("a.txt", "a.txt.gz")
    )
    assert [(b.number, b.documents) for b in plain] == [(b.number, b.documents) for b in zipped]


def test_a_document_longer_than_a_block_is_cut_and_told(tmp_path, caplog):
    lines = [f"This is sentence number {i}." for i in range(400)]
    corpus = Corpus([written(tmp_path / "a.txt", "\n".join(lines))], block_bytes=1024)
    with caplog.at_level(logging.WARNING):
        blocks = list(corpus.blocks())
        list(corpus.blocks())
    assert len(blocks) > 5 and all(len(block.documents) == 1 for block in blocks)
    assert "\n".join(block.documents[0] for block in blocks) == "\n".join(lines)
    (message,) = [record.getMessage() for record in caplog.records]  # once
    assert message.endswith(
        "a.txt: a document longer than `block_bytes`=1024 was cut into parts"
    )


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Large and small files, plain and gzipped."""
    folder = tmp_path_factory.mktemp("mixed")
    paths = [
        written(folder / f"{i}.txt{'.gz' * (i % 6 == 0)}", text_of(documents(size, seed=i)))
        for i, size in enumerate([60, 1, 2, 40, 1, 1, 90, 3])
    ]
    return Corpus(paths, block_bytes=2048)


@given(st.integers(1, 7), st.one_of(st.none(), st.integers(0, 9)), st.integers(0, 3))
def test_workers_share_all_blocks(mixed, workers, seed, epoch):
    every = {(b.run, b.number): b for b in mixed.blocks()}
    found = [
        block for w in range(workers) for block in mixed.blocks(seed, epoch, w, workers)
    ]
    assert sorted(names(found)) == sorted(every)
    assert all(every[block.run, block.number] == block for block in found)


def test_order(mixed):
    ordered = names(mixed.blocks())
    assert ordered == sorted(ordered) and len(ordered) > 15
    shuffled = names(mixed.blocks(seed=1))
    assert shuffled != ordered and shuffled == names(mixed.blocks(seed=1))
    assert names(mixed.blocks(seed=1, epoch=1)) != shuffled != names(mixed.blocks(seed=2))


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("worker, workers", [(0, 1), (1, 3)])
def test_going_on(mixed, seed, worker, workers):
    every = names(mixed.blocks(seed, 1, worker, workers))
    for first in range(len(every) + 2):
        assert names(mixed.blocks(seed, 1, worker, workers, first)) == every[first:]


def test_workers_get_about_as_much(mixed):
    counts = [len(list(mixed.blocks(0, 0, worker, 3))) for worker in range(3)]
    assert max(counts) - min(counts) <= 4  # each of the gzipped files may give one more


def test_memory_holds_one_block(tmp_path):
    """Of 4 MB in blocks of 64 kB less than 768 kB: a block's bytes, its text and its documents."""
    path = written(tmp_path / "a.txt", text_of(documents(1000)) * 15)
    assert path.stat().st_size > 3 << 20
    for file in (path, written(tmp_path / "a.gz", path.read_bytes())):
        corpus = Corpus([file], block_bytes=1 << 16)
        tracemalloc.start()
        try:
            assert sum(1 for _ in corpus.blocks()) > 40
            assert tracemalloc.get_traced_memory()[1] < 3 << 18
        finally:
            tracemalloc.stop()


def test_fingerprint(tmp_path):
    one, two = (written(tmp_path / f"{name}.txt", "Text.") for name in "ab")
    longer = written(tmp_path / "c.txt", "Text. ")
    corpora = [
        Corpus([one]),
        Corpus([two]),
        Corpus([one, two]),
        Corpus([longer]),
        Corpus([one], separator="x"),
        Corpus([one], encoding_errors="replace"),
    ]
    assert len({corpus.fingerprint for corpus in corpora}) == len(corpora)
    assert Corpus([one], block_bytes=100).fingerprint == corpora[0].fingerprint


# --- bad input ----------------------------------------------------------------------------------


def test_broken_utf8_names_file_and_line_wherever_it_is(tmp_path):
    good = text_of(documents(300)).encode()
    bad = written(tmp_path / "bad.txt", good + b"caf\xe9 here\n" + good)
    line = good.count(b"\n") + 1
    message = rf"bad\.txt, line {line}: the file must be UTF-8 .* Received: the byte 0xe9\. `enc"
    assert len(good) > 1 << 16  # so that it is not seen at first sight
    for size in (2048, 1 << 22):  # by itself, and behind another file
        corpus = Corpus([written(tmp_path / "good.txt", good), bad], block_bytes=size)
        with pytest.raises(ValueError, match=message):
            list(corpus.blocks())
    corpus = Corpus([bad], encoding_errors="replace")
    assert any("caf\ufffd here" in d for block in corpus.blocks() for d in block.documents)


def test_broken_utf8_far_behind_is_found_while_reading(tmp_path):
    content = b"Some words here.\n" * 10_000 + b"\xff\n"
    corpus = Corpus([written(tmp_path / "a.txt", content)], block_bytes=1 << 16)
    with pytest.raises(ValueError, match=r"a\.txt, line 10001: .* Received: the byte 0xff"):
        list(corpus.blocks())
    cut = written(tmp_path / "b.txt", "One. \u00e4".encode()[:-1])
    with pytest.raises(ValueError, match=r"b\.txt, line 1: .* Received: the byte 0xc3"):
        list(Corpus([cut]).blocks())


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.bin", b"\x7fELF\x00\x01", r"a\.bin: the file must be UTF-8 text\. .* zero byte at 4"),
        ("a.txt", "text".encode("utf-16"), r"a\.txt: .* zero byte at 3, as in binary files and"),
        ("a.png", b"ok\n\x89PNG", r"a\.png, line 2: the file must be UTF-8 .* the byte 0x89"),
        ("a.gz", b"plain", r"a\.gz: the file must be gzip data\. Received: Not a gzipped file"),
        ("a.txt", b"", r"`files` must hold text\. Received: .*a\.txt$"),
    ],
)
def test_what_is_no_text(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Corpus([path])


def test_broken_gzip_is_found_while_reading(tmp_path):
    path = written(tmp_path / "a.gz", text_of(documents(3000)))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"a\.gz: the file must be gzip data"):
        list(Corpus([path]).blocks())


def test_other_wrong_arguments(tmp_path):
    path = written(tmp_path / "a.txt", "Text.")
    with pytest.raises(FileNotFoundError, match="`files` must be files. .*, which is no file"):
        Corpus([path, tmp_path / "b.txt"])
    with pytest.raises(FileNotFoundError, match="`files` must be files. .*, which is a folder"):
        Corpus([tmp_path])
    with pytest.raises(ValueError, match="`files` must hold text. Received: no file"):
        Corpus([])
    with pytest.raises(TypeError, match="`files` must be a list of paths. Received: files='a.txt'"):
        Corpus("a.txt")
    with pytest.raises(ValueError, match="`block_bytes` must be at least 16. Received: 15"):
        Corpus([path], block_bytes=15)
    with pytest.raises(ValueError, match="`encoding_errors` must be 'strict' or 'replace'. Rec"):
        Corpus([path], encoding_errors="ignore")
    with pytest.raises(ValueError, match="`worker` must be .* Received: worker=2, workers=2"):
        list(Corpus([path]).blocks(worker=2, workers=2))
