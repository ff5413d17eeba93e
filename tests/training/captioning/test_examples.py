from pathlib import Path

import pytest

from kbert.text.subword import Subword
from kbert.training.captioning.examples import read_captioning_data, run_subwords
from kbert.training.runs.run_directory import write_config
from tests.training.tiny_captions import TinyCaptions


def test_a_split_is_by_names(tiny_captions: TinyCaptions, tmp_path: Path):
    data = read_captioning_data(tiny_captions.config(tmp_path))
    assert list(data.parts) == ["train", "validation", "test"]
    names = [part.images for part in data.parts.values()]
    assert [len(each) for each in names] == [12, 4, 4]
    every = [name for each in names for name in each]
    assert every == [f"3-{number:05d}.png" for number in range(20)]
    assert all(len(captions) == 2 for captions in data.parts["train"].captions)
    assert set(data.hashes) == {"data_sha256", "validation_sha256", "test_sha256"}


def test_tables_apart(tiny_captions: TinyCaptions, tmp_path: Path):
    lines = tiny_captions.table.read_text().splitlines(keepends=True)
    (tmp_path / "train.csv").write_text("".join(lines[:9]))
    (tmp_path / "dev.csv").write_text(lines[0].replace("caption", "text") + "".join(lines[9:13]))
    files = {"train": str(tmp_path / "train.csv"), "split": None}
    data = read_captioning_data(tiny_captions.config(tmp_path, **files))
    assert list(data.parts) == ["train"] and len(data.parts["train"]) == 4
    files["validation"] = str(tmp_path / "dev.csv")
    with pytest.raises(ValueError, match="caption.*text|text.*caption"):
        read_captioning_data(tiny_captions.config(tmp_path, **files))
    with pytest.raises(FileNotFoundError, match="none"):
        read_captioning_data(tiny_captions.config(tmp_path, train=str(tmp_path / "none.csv")))
    with pytest.raises(FileNotFoundError, match="`folder` must be the folder of the images"):
        read_captioning_data(tiny_captions.config(tmp_path, images=str(tmp_path / "gone")))
    with pytest.raises(ValueError, match="`split` must be of 20 images at most"):
        read_captioning_data(tiny_captions.config(tmp_path, split="12,5,4"))


def test_hashes_know_captions_and_images(tiny_captions: TinyCaptions, tmp_path: Path):
    images = tmp_path / "images"
    images.mkdir()
    table = tmp_path / "a.csv"
    for file in (tiny_captions.table.parent / "images").iterdir():
        (images / file.name).write_bytes(file.read_bytes())
    table.write_text(tiny_captions.table.read_text())
    config = tiny_captions.config(tmp_path, train=str(table), images=str(images))
    first = read_captioning_data(config).hashes
    assert read_captioning_data(tiny_captions.config(tmp_path)).hashes == first
    (images / "3-00013.png").write_bytes((images / "3-00000.png").read_bytes())
    second = read_captioning_data(config).hashes
    assert {key for key in first if first[key] != second[key]} == {"validation_sha256"}
    text = table.read_text()
    line = text.splitlines()[1]
    table.write_text(text.replace(line, f"{line} indeed", 1))
    third = read_captioning_data(config).hashes
    assert {key for key in first if second[key] != third[key]} == {"data_sha256"}


def test_pieces_are_of_the_training_captions_in_lower_case(
    tiny_captions: TinyCaptions, tmp_path: Path
):
    config = tiny_captions.config(tmp_path)
    data = read_captioning_data(config)
    subwords = run_subwords(config, data, None)
    assert len(subwords) == 60
    assert subwords.tokens("A RED Star") == subwords.tokens("a red star")
    assert subwords.unknown_id not in subwords.tokenize(["A RED Star"]).to_list()[0]
    assert not [piece for piece in subwords.pieces if piece != piece.lower()]
    assert run_subwords(config, data, None).model == subwords.model
    plain = run_subwords(config.with_values(normalization="nfkc"), data, None)
    assert plain.tokens("A RED") != plain.tokens("a red")


def test_ready_pieces_and_those_of_a_stopped_run(tiny_captions: TinyCaptions, tmp_path: Path):
    config = tiny_captions.config(tmp_path)
    data = read_captioning_data(config)
    subwords = run_subwords(config, data, None)
    subwords.save(tmp_path / "ready.model")
    ready = tiny_captions.values(tmp_path, subwords=str(tmp_path / "ready.model"))
    del ready["vocabulary_size"]
    assert run_subwords(config.from_dict(ready), data, None).model == subwords.model
    kept = tmp_path / "kept"
    kept.mkdir()
    write_config(config, kept)
    other = run_subwords(config.with_values(subword_type="unigram"), data, None)
    other.save(kept / "subwords.model")
    again = run_subwords(config, data, kept)
    assert again.model == other.model == Subword.from_file(kept / "subwords.model").model
    with pytest.raises(ValueError, match="vocabulary_size"):
        run_subwords(config.with_values(vocabulary_size=61), data, kept)
