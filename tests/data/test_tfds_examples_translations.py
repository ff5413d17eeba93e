"""TFDS datasets of translations, prepared without a network from sentences of our own."""

import io
import tarfile

import pytest

from kbert.data.tfds_dataset import import_tfds
from kbert.data.tfds_examples import read_tfds_translations

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
TED = "ted_hrlr_translate/pt_to_en"
PORTUGUESE = {"train": ["bom dia .", "uma maçã", "o gato"], "dev": ["olá"], "test": ["sim", "não"]}
ENGLISH = {"train": ["good morning .", "an apple", "the cat"], "dev": ["hi"], "test": ["yes", "no"]}
GERMAN = [("Ein Hund.", "A dog."), ("Zwei Äpfel\u2028und Brot.", "Two apples."), ("", "Nothing.")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """An empty TFDS folder, and a folder with the original file under its original name."""
    manual = tmp_path_factory.mktemp("manual")
    with tarfile.open(manual / "qi18naacl-dataset.tar.gz", "w:gz") as archive:
        for language, parts in (("pt", PORTUGUESE), ("en", ENGLISH)):
            for part, sentences in parts.items():
                content = ("\n".join(sentences) + "\n").encode("utf-8")
                entry = tarfile.TarInfo(f"datasets/pt_to_en/{language}.{part}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return {"data_dir": tmp_path_factory.mktemp("tfds"), "manual_dir": manual}


@pytest.fixture(scope="module")
def wmt(tmp_path_factory):
    """A TFDS folder with a WMT dataset as TFDS prepares it; the original files are gigabytes."""
    tfds = import_tfds()
    folder = tmp_path_factory.mktemp("wmt")
    rows = [(i, {"de": german, "en": english}) for i, (german, english) in enumerate(GERMAN)]
    for name in ("wmt14_translate", "wmt16_translate"):
        tfds.dataset_builders.store_as_tfds_dataset(
            name=name,
            version=str(tfds.builder(f"{name}/de-en", data_dir=folder).version),
            config="de-en",
            features=tfds.features.Translation(languages=("de", "en")),
            split_datasets={"train": rows},
            data_dir=folder,
            disable_shuffling=True,
        )
    return folder


@pytest.mark.parametrize("split, part", [("train", "train"), ("dev", "dev"), ("validation", "dev")])
def test_the_sentences_of_a_split(folders, split, part):
    examples = read_tfds_translations(TED, split, **folders, check_manual_files=False)
    pairs = sorted(zip(examples.sources, examples.targets))  # TFDS has an order of its own
    assert pairs == sorted(zip(PORTUGUESE[part], ENGLISH[part]))
    assert examples.lines == list(range(1, len(pairs) + 1))
    assert examples.source == f"tfds:{TED}/{'train' if part == 'train' else 'validation'}"


def test_a_prepared_dataset_needs_no_files_and_goes_both_ways(folders):
    read_tfds_translations(TED, **folders, check_manual_files=False)
    arguments = {"data_dir": folders["data_dir"]}
    forth = read_tfds_translations(TED, "test", **arguments)
    for way in ({"source_language": "en"}, {"target_language": "pt"}):
        back = read_tfds_translations(TED, "test", **arguments, **way)
        assert (back.sources, back.targets) == (forth.targets, forth.sources)
    assert len(read_tfds_translations(TED, "train[:2]", **arguments)) == 2


@pytest.mark.parametrize("name", ["wmt14_translate/de-en", "wmt16_translate/de-en"])
def test_wmt(wmt, name):
    examples = read_tfds_translations(name, data_dir=wmt)
    assert list(zip(examples.sources, examples.targets)) == GERMAN
    examples = read_tfds_translations(
        name, data_dir=wmt, source_language="en", target_language="de"
    )
    assert list(zip(examples.targets, examples.sources)) == GERMAN


def test_wrong_arguments(folders):
    data_dir = folders["data_dir"]
    read_tfds_translations(TED, **folders, check_manual_files=False)
    for argument in ("source_language", "target_language"):
        message = rf"`{argument}` must be one of the languages of ted.*, pt, en\. Rec.*='EN'\. Did"
        with pytest.raises(ValueError, match=message):
            read_tfds_translations(TED, data_dir=data_dir, **{argument: "EN"})
    same = {"source_language": "en", "target_language": "en"}
    message = r"`source_language` and `target_language` must be two of the languages of ted_hrlr"
    with pytest.raises(ValueError, match=message):
        read_tfds_translations(TED, data_dir=data_dir, **same)
    with pytest.raises(ValueError, match=r"`name` must be a dataset with sentences in two lang"):
        read_tfds_translations("imdb_reviews", data_dir=data_dir)
    with pytest.raises(ValueError, match=r"`name` must be a dataset of TFDS.*'wmt16_translate/xx"):
        read_tfds_translations("wmt16_translate/xx-en", data_dir=data_dir)
    with pytest.raises(ValueError, match=r"`split` must be one of .*'tran'\. Did you mean `train`"):
        read_tfds_translations(TED, "tran", data_dir=data_dir)
    with pytest.raises(RuntimeError, match=r"must hold the original files of ted.*qi18naacl-data"):
        read_tfds_translations(TED, data_dir=data_dir / "other", manual_dir=data_dir)
