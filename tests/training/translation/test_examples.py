import gzip

import pytest

from kbert.training.config.translation_config import TranslationConfig
from kbert.training.translation.examples import read_table_of_pairs, read_translation_data
from tests.training.tiny_translations import PARTS, SOURCES, TARGETS, TinyPairs


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return TinyPairs(tmp_path_factory.mktemp("pairs"))


def test_tables_and_files_hold_the_same(pairs, tmp_path):
    by_table = read_translation_data(pairs.config(tmp_path, test=str(pairs.folder / "test.tsv")))
    files = {
        f"{part}_{side}": str(pairs.folder / f"{part}.{language}")
        for part in PARTS
        for side, language in (("source", "en"), ("target", "de"))
    }
    by_files = read_translation_data(
        pairs.config(tmp_path, train=None, validation=None, **files)
    )
    assert list(by_files.parts) == list(by_table.parts) == list(PARTS)
    for part, rows in PARTS.items():
        for data in (by_table, by_files):
            assert data.parts[part].sources == SOURCES[rows]
            assert data.parts[part].targets == TARGETS[rows]
    assert by_files.hashes == by_table.hashes


def test_the_hash_knows_every_sentence_and_its_place(pairs, tmp_path):
    first = read_translation_data(pairs.config(tmp_path))
    assert list(first.parts) == ["train", "validation"] and first.test is None
    texts = (pairs.folder / "train.tsv").read_text().splitlines()
    file = tmp_path / "other.tsv"
    for lines in (texts[:-1], [texts[0], texts[2], texts[1], *texts[3:]]):
        file.write_text("\n".join(lines) + "\n")
        other = read_translation_data(pairs.config(tmp_path, train=str(file)))
        assert other.hashes["data_sha256"] != first.hashes["data_sha256"]
        assert other.hashes["validation_sha256"] == first.hashes["validation_sha256"]


def test_other_columns_and_gzip(pairs, tmp_path):
    file = tmp_path / "pairs.csv.gz"
    file.write_bytes(gzip.compress("my,en\nမြစ်,river\n".encode()))
    values = {"train": str(file), "source_column": "en", "target_column": "my"}
    data = read_translation_data(TranslationConfig.from_dict({**values, "output": "o"}))
    assert (data.train.sources, data.train.targets) == (["river"], ["မြစ်"])


def test_files_of_different_numbers_of_lines(pairs, tmp_path):
    (tmp_path / "short.de").write_text("rot\n")
    values = {"train": None, "train_source": str(pairs.folder / "train.en")}
    config = pairs.config(tmp_path, **values, train_target=str(tmp_path / "short.de"))
    with pytest.raises(ValueError, match=r"Received: 56 lines in .*train.en, 1 lines in .*short.d"):
        read_translation_data(config)


def test_broken_utf_8_names_file_and_line(tmp_path):
    file = tmp_path / "broken.tsv"
    file.write_bytes(b"source\ttarget\nred\trot\nbl\xffue\tblau\n")
    with pytest.raises(ValueError, match=r"broken.tsv, line 3: .* UTF-8"):
        read_table_of_pairs(file)


def test_splits_and_languages_reach_tfds(monkeypatch, tmp_path):
    asked = []

    def read(name, split, **others):
        asked.append((name, split, others))
        return read_table_of_pairs(tmp_path / "a.tsv")

    (tmp_path / "a.tsv").write_text("source\ttarget\na\tb\n")
    monkeypatch.setattr("kbert.training.translation.examples.read_tfds_translations", read)
    name = "tfds:wmt16_translate/de-en"
    values = {"train": f"{name}@train[:9]", "validation": name, "output": "o"}
    config = TranslationConfig.from_dict({**values, "source_language": "en", "data": "d"})
    read_translation_data(config)
    languages = {"source_language": "en", "target_language": None, "data_dir": "d"}
    assert asked == [
        ("wmt16_translate/de-en", "train[:9]", languages),
        ("wmt16_translate/de-en", "validation", languages),
    ]
    read_table_of_pairs(name)
    assert asked[-1] == ("wmt16_translate/de-en", "test", {})
