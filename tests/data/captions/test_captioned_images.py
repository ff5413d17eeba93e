"""Captions of images from tables; the rows were written for these tests."""

import gzip
from pathlib import Path

import pytest

from kbert.data.captions.captioned_images import CaptionExamples, read_captions

CSV = (
    "image,caption\n"
    "b.jpg,A dog runs .\n"
    'a.jpg,"A cat , which sleeps ."\n'
    "b.jpg,The brown dog\n"
    "sub/c.png,A tree\n"
)
CAPTIONS = [["A dog runs .", "The brown dog"], ["A cat , which sleeps ."], ["A tree"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    images = tmp_path / "images"
    (images / "sub").mkdir(parents=True)
    for name in ("a.jpg", "b.jpg", "sub/c.png"):
        (images / name).write_bytes(b"")
    return images


def write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_several_rows_an_image(folder: Path):
    examples = read_captions(write(folder / "c.csv", CSV), folder)
    assert examples.images == ["b.jpg", "a.jpg", "sub/c.png"]
    assert examples.captions == CAPTIONS
    assert examples.lines == [2, 3, 5]
    assert examples.paths[2] == folder / "sub/c.png"
    assert examples.pairs == [
        (0, "A dog runs ."),
        (0, "The brown dog"),
        (1, "A cat , which sleeps ."),
        (2, "A tree"),
    ]
    assert len(examples) == 3 and examples.head(1).captions == CAPTIONS[:1]


@pytest.mark.parametrize("name", ["captions.txt", "captions.txt.gz", "captions", "c.csv.gz"])
def test_names_that_do_not_tell_the_format(folder: Path, name: str):
    path = folder / name
    path.write_bytes(gzip.compress(CSV.encode()) if name.endswith("gz") else CSV.encode())
    assert read_captions(path, folder).captions == CAPTIONS
    with pytest.raises(FileNotFoundError, match="`path` must be a file. Received: .*captoins.txt"):
        read_captions(folder / "captoins.txt", folder)


def test_tsv_and_other_columns(folder: Path):
    content = "id\tfile\ttext\n1\tb.jpg\tA dog\n2\tb.jpg\tB , dog\n"
    for name in ("c.tsv", "c.txt"):
        examples = read_captions(write(folder / name, content), folder, "file", "text")
        assert examples.captions == [["A dog", "B , dog"]]


def test_numbered_captions(folder: Path):
    content = "b.jpg#0\tA dog\na.jpg#0\tA cat\nb.jpg#1\tB , dog\n"
    examples = read_captions(write(folder / "Flickr8k.token.txt", content), folder, 0, 1)
    assert examples.images == ["b.jpg", "a.jpg"]
    assert examples.captions == [["A dog", "B , dog"], ["A cat"]]


def test_json_lines(folder: Path):
    content = (
        '{"image": "a.jpg", "caption": "A cat"}\n'
        '{"image": "b.jpg", "caption": ["A dog", "B dog"]}\n'
        '{"image": "a.jpg", "caption": "B cat"}\n'
    )
    examples = read_captions(write(folder / "c.jsonl", content), folder)
    assert examples.captions == [["A cat", "B cat"], ["A dog", "B dog"]]


def test_images_alone(folder: Path):
    path = write(folder / "c.csv", "image\nb.jpg\na.jpg\n")
    examples = read_captions(path, folder, labeled=False)
    assert (examples.images, examples.captions, examples.pairs) == (["b.jpg", "a.jpg"], None, [])
    assert [part.images for part in examples.split([1])] == [["a.jpg"]]


def test_split_by_sorted_names(folder: Path):
    examples = read_captions(write(folder / "c.csv", CSV), folder)
    first, second = examples.split([1, 2])
    assert (first.images, second.images) == (["a.jpg"], ["b.jpg", "sub/c.png"])
    assert second.captions == [CAPTIONS[0], CAPTIONS[2]] and second.lines == [2, 5]
    assert [part.images for part in examples.split([1, 1])] == [["a.jpg"], ["b.jpg"]]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([2, 2], "add up to the number of images at most. Received: sizes=[2, 2] for 3 images"),
        ([], "must be whole numbers, at least 1. Received: sizes=[]"),
        ([1, 0], "must be whole numbers, at least 1"),
        ([1.0], "must be whole numbers, at least 1"),
    ],
)
def test_wrong_sizes(sizes: list, message: str):
    examples = CaptionExamples(["a", "b", "c"], None, [1, 2, 3], "images", "c.csv")
    with pytest.raises(ValueError, match="`sizes` must") as caught:
        examples.split(sizes)
    assert message in str(caught.value)


def test_missing_files_are_listed_together(folder: Path):
    rows = "".join(f"{i}.jpg,A dog\n{i}.jpg,B dog\n" for i in range(7))
    path = write(folder / "c.csv", CSV + rows)
    with pytest.raises(FileNotFoundError) as caught:
        read_captions(path, folder)
    assert str(caught.value) == (
        f"{path}: every image must be a file in {str(folder)!r}. Received: 7 of 10 that are "
        "missing: '0.jpg' (line 6), '1.jpg' (line 8), '2.jpg' (line 10), '3.jpg' (line 12), "
        "'4.jpg' (line 14), ..."
    )
    with pytest.raises(FileNotFoundError, match="`folder` must be the folder of the images"):
        read_captions(path, folder / "no")


@pytest.mark.parametrize("empty", ["", "  "])
def test_empty_captions_are_listed_together(folder: Path, empty: str):
    path = write(folder / "c.csv", CSV + f"b.jpg,{empty}\na.jpg,A cat\na.jpg,{empty}\n")
    with pytest.raises(ValueError) as caught:
        read_captions(path, folder)
    assert str(caught.value) == (
        f"{path}: captions must not be empty. Received: 2 empty ones, on lines 6, 8"
    )


@pytest.mark.parametrize("value", ["[]", '["a", ""]'])
def test_empty_lists_of_captions(folder: Path, value: str):
    path = write(folder / "c.jsonl", f'{{"image": "a.jpg", "caption": {value}}}\n')
    with pytest.raises(ValueError, match="Received: 1 empty ones, on line 1"):
        read_captions(path, folder)


@pytest.mark.parametrize("name", ["/a.jpg", "../a.jpg", "sub/../../a.jpg", " "])
def test_names_below_the_folder(folder: Path, name: str):
    path = write(folder / "c.csv", CSV + f"{name},A cat\n")
    with pytest.raises(ValueError, match="line 6, column `image`: the image must be a name below"):
        read_captions(path, folder)


def test_other_errors_name_the_column(folder: Path):
    path = write(folder / "c.csv", CSV)
    with pytest.raises(ValueError, match="Did you mean `caption`"):
        read_captions(path, folder, caption="captions")
    path = write(folder / "c.jsonl", '{"image": "a.jpg", "caption": 5}\n')
    with pytest.raises(ValueError, match="the caption must be a string, or a list of strings"):
        read_captions(path, folder)


def test_flickr8k(shared_data: Path):
    folder = shared_data / "captions"
    if not folder.is_dir():
        pytest.skip(f"no captions/ in {shared_data}")
    examples = read_captions(folder / "captions.txt.gz", folder / "images")
    assert len(examples) == 1000 and {len(each) for each in examples.captions} == {5}
    parts = examples.split([800, 100, 100])
    assert [len(part) for part in parts] == [800, 100, 100]
    names = [name for part in parts for name in part.images]
    assert names == sorted(examples.images)
