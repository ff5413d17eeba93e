"""Parallel text from two files and from tables. Expected values by hand."""

import gzip
import os
import threading

import pytest

from kbert.data.translation.parallel_text import ParallelText, read_parallel, read_parallel_tsv


def write(path, content):
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def pair(folder, source, target, suffix=""):
    return write(folder / f"a.en{suffix}", source), write(folder / f"a.de{suffix}", target)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_two_files(tmp_path, suffix):
    paths = pair(tmp_path, "A dog.\nTea 🙂\n", "Ein Hund.\nTee 🙂\n", suffix)
    examples = read_parallel(*paths)
    assert examples.sources == ["A dog.", "Tea 🙂"]
    assert examples.targets == ["Ein Hund.", "Tee 🙂"]
    assert examples.lines == [1, 2]
    assert examples.source == f"{paths[0]} and {paths[1]}"


def test_sources_alone(tmp_path):
    examples = read_parallel(write(tmp_path / "a.en", "One.\nTwo."))
    assert (examples.sources, examples.targets) == (["One.", "Two."], None)
    assert examples.select([1]).lines == [2]


def test_different_numbers_of_lines_name_both(tmp_path):
    source, target = pair(tmp_path, "a\nb\nc\n", "a\nb\n")
    message = (
        r"The files of .* must have the same number of lines\. Received: 3 lines "
        r"in .*a\.en, 2 lines in .*a\.de"
    )
    with pytest.raises(ValueError, match=message):
        read_parallel(source, target)
    # A blank last line is a line.
    with pytest.raises(ValueError, match="3 lines in .*, 2 lines in"):
        read_parallel(*pair(tmp_path, "a\nb\n\n", "a\nb\n"))
    with pytest.raises(ValueError, match="0 lines in .*, 1 lines in"):
        read_parallel(*pair(tmp_path, "", "a\n"))


def test_empty_lines_stay(tmp_path):
    examples = read_parallel(*pair(tmp_path, "a\n\n \n\n", "b\nc\n\n\n"))
    assert examples.sources == ["a", "", " ", ""]
    assert examples.targets == ["b", "c", "", ""]
    assert examples.lines == [1, 2, 3, 4]


def test_only_line_feeds_end_lines(tmp_path):
    """Those are what str.splitlines would split at besides."""
    odd = ["a\u2028b", "a\u2029b", "a\x85b", "a\x0bb", "a\x0cb", "a\x1cb", "a\rb", "a\x00b"]
    examples = read_parallel(*pair(tmp_path, "\n".join(odd), "\r\n".join("xyzuvwst") + "\r\n"))
    assert examples.sources == odd
    assert examples.targets == list("xyzuvwst")


def test_a_byte_order_mark_is_no_part_of_the_first_sentence(tmp_path):
    examples = read_parallel(*pair(tmp_path, b"\xef\xbb\xbfa\r\nb\r\n", b"\xef\xbb\xbfc\nd"))
    assert (examples.sources, examples.targets) == (["a", "b"], ["c", "d"])


def test_a_very_long_line(tmp_path):
    long = "wörter " * 14_286  # 100,002 characters
    examples = read_parallel(*pair(tmp_path, f"a\n{long}\nc\n", "x\ny\nz\n"))
    assert [len(text) for text in examples.sources] == [1, 100_002, 1]


def test_broken_utf8_names_file_and_line(tmp_path):
    paths = pair(tmp_path, "a\nb\nc\n", b"eins\nzwei\nf\xfcnf\n")
    with pytest.raises(ValueError, match=r"a\.de, line 3: the file must be UTF-8.*byte 0xfc"):
        read_parallel(*paths)
    zipped = pair(tmp_path, "a\n", b"\xff\n", ".gz")
    with pytest.raises(ValueError, match=r"a\.de\.gz, line 1: the file must be UTF-8.*0xff"):
        read_parallel(*zipped)


def test_files_that_are_missing_empty_or_no_gzip(tmp_path):
    there = write(tmp_path / "a.en", "a\n")
    message = r"`target_path` must be a file\. Received: target_path='.*no\.de', which does not ex"
    with pytest.raises(FileNotFoundError, match=message):
        read_parallel(there, tmp_path / "no.de")
    with pytest.raises(FileNotFoundError, match=r"`source_path` must be .*', which is a folder"):
        read_parallel(tmp_path, there)
    with pytest.raises(FileNotFoundError, match=r"`path` must be a file\. Received: path='"):
        read_parallel_tsv(tmp_path / "no.tsv")
    with pytest.raises(ValueError, match=r"a\.de: there must be sentences\. Received: empty"):
        read_parallel(*pair(tmp_path, "", ""))
    (tmp_path / "b.en.gz").write_bytes(b"plain\n")
    with pytest.raises(ValueError, match=r"b\.en\.gz: the file must be gzip data"):
        read_parallel(tmp_path / "b.en.gz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_a_pipe_is_a_file_too(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("a\nb\n",))
    writer.start()
    assert read_parallel(tmp_path / "pipe").sources == ["a", "b"]
    writer.join()


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_tsv_file(tmp_path, suffix):
    content = '\ufeffsource\ttarget\nA "dog".\tEin "Hund".\r\n\nno\u2028break\t\n\t\n'
    examples = read_parallel_tsv(write(tmp_path / f"a.tsv{suffix}", content))
    assert examples.sources == ['A "dog".', "no\u2028break", ""]
    assert examples.targets == ['Ein "Hund".', "", ""]
    assert examples.lines == [2, 4, 5]
    assert examples.source.endswith(f"a.tsv{suffix}")


def test_columns_by_name_and_index(tmp_path):
    named = write(tmp_path / "a.tsv", "id\tde\ten\n7\tTee\ttea\n")
    assert read_parallel_tsv(named, ("en", "de")).targets == ["Tee"]
    assert read_parallel_tsv(named, ("en", None)).targets is None
    bare = write(tmp_path / "b.tsv", "tea\tTee\tby someone\n")
    examples = read_parallel_tsv(bare, (0, 1))
    assert (examples.sources, examples.targets, examples.lines) == (["tea"], ["Tee"], [1])


def test_csv_and_json_lines(tmp_path):
    csv = write(tmp_path / "a.csv", 'source,target\n"a, b","c\nd"\n')
    assert read_parallel_tsv(csv).targets == ["c\nd"]
    rows = write(tmp_path / "a.jsonl", '{"source": "a", "target": "b"}\n')
    assert read_parallel_tsv(rows).targets == ["b"]


def test_wrong_tables(tmp_path):
    path = write(tmp_path / "a.tsv", "en\tde\na\tb\nc\n")
    with pytest.raises(ValueError, match=r"a\.tsv, line 3: each row must have 2 fields"):
        read_parallel_tsv(path, ("en", "de"))
    path = write(tmp_path / "a.tsv", "en\tde\na\tb\n")
    with pytest.raises(ValueError, match=r"must have a column `source`.*`en`, `de`"):
        read_parallel_tsv(path)
    for columns in (("en",), "en", (None, "de")):
        with pytest.raises(ValueError, match=r"`columns` must be the column of the sentences and"):
            read_parallel_tsv(path, columns)
    broken = write(tmp_path / "b.tsv", b"source\ttarget\na\t\xe9\n")
    with pytest.raises(ValueError, match=r"b\.tsv, line 2: the file must be UTF-8"):
        read_parallel_tsv(broken)


def test_columns_have_one_length():
    with pytest.raises(ValueError, match="`targets` must be as long as `sources`, 1. Received: 2"):
        ParallelText(["a"], ["b", "c"], "x", [1])


def test_multi30k(multi30k):
    """The numbers of sentences stand in the corpus' README."""
    for name, count in (("train", 29_000), ("val", 1_014), ("test_2016_flickr", 1_000)):
        examples = read_parallel(multi30k / f"{name}.en.gz", multi30k / f"{name}.de.gz")
        assert len(examples) == count
