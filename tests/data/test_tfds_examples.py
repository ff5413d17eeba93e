"""TFDS datasets, prepared without a network from fixtures under the original names."""

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from kbert.data import tfds_dataset as tfds_sources
from kbert.data import tfds_examples
from kbert.data.entities.tagged_sentences import read_conll
from kbert.data.questions.squad import read_squad
from kbert.data.tfds_examples import read_tfds, read_tfds_questions, read_tfds_sentences

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
FIXTURES = Path(__file__).parent / "fixtures"
URL = "https://data.deepai.org/conll2003.zip"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """An empty TFDS folder, and a folder with original files under their original names."""
    manual = tmp_path_factory.mktemp("manual")
    for file in (FIXTURES / "squad").glob("*.json"):
        shutil.copy(file, manual / file.name)
    with zipfile.ZipFile(manual / "conll2003.zip", "w") as archive:
        for file in (FIXTURES / "conll2003").glob("*.txt"):
            archive.write(file, file.name)
    return {"data_dir": tmp_path_factory.mktemp("tfds"), "manual_dir": manual}


@pytest.mark.parametrize(
    "name, split, file",
    [
        ("squad/v1.1", "train", "train-v1.1.json"),
        ("squad/v1.1", "dev", "dev-v1.1.json"),
        ("squad/v2.0", "train", "train-v2.0.json"),
        ("squad/v2.0", "validation", "dev-v2.0.json"),
    ],
)
def test_questions_of_tfds_and_files_agree(folders, name, split, file):
    examples = read_tfds_questions(name, split, **folders, check_manual_files=False)
    expected = read_squad(FIXTURES / "squad" / file)
    order = [examples.ids.index(id) for id in expected.ids]  # TFDS has an order of its own
    sorted_examples = examples.select(order)
    for column in ("ids", "questions", "contexts", "answers", "titles"):
        assert getattr(sorted_examples, column) == getattr(expected, column)
    assert examples.paths == [f"row {i + 1}" for i in range(len(expected))]
    assert examples.source == f"tfds:{name}/{'train' if split == 'train' else 'validation'}"
    assert examples.labeled


def test_a_prepared_dataset_needs_no_files(folders):
    read_tfds_questions(**folders, check_manual_files=False)
    arguments = {"data_dir": folders["data_dir"]}
    first = read_tfds_questions("squad/v1.1", "train[:2]", **arguments, labeled=False)
    assert (len(first), first.answers, first.labeled) == (2, [[], []], False)
    assert first.ids == read_tfds_questions("squad/v1.1", **arguments).ids[:2]


@pytest.mark.parametrize(
    "split, file", [("train", "train"), ("validation", "valid"), ("dev", "valid"), ("test", "test")]
)
def test_sentences_of_tfds_and_files_agree(folders, split, file):
    sentences = read_tfds_sentences("conll2003", split, **folders)
    expected = read_conll(FIXTURES / "conll2003" / f"{file}.txt")
    found = sorted(zip(sentences.words, sentences.tags))
    assert found == sorted(zip(expected.words, expected.tags))
    assert sentences.documents == [0] * len(expected)
    assert len(set(sentences.lines)) == len(expected)


def test_other_columns_of_conll(folders):
    arguments = {"data_dir": folders["data_dir"]}
    read_tfds_sentences(**folders)
    chunks = read_tfds_sentences("conll2003", "test", **arguments, tags="chunks")
    assert chunks.tags == [["B-NP", "B-VP"]]
    with pytest.raises(ValueError, match=r"`tags` must name a feature of class labels.*'tokens'"):
        read_tfds_sentences("conll2003", "test", **arguments, tags="tokens")
    with pytest.raises(ValueError, match="`text_a` must name a text feature of conll.*'tokens'"):
        read_tfds("conll2003", "test", **arguments, text_a="tokens", label="ner")


def test_several_labels_a_row(monkeypatch):
    class Dataset:
        features = {"comment": "a text", "topics": "a sequence"}

        def __init__(self, name, data_dir):
            self.name = name

        def rows(self, split, manual_dir, check_manual_files):
            return iter([{"comment": b"a", "topics": np.array([1, 0])}]), "tfds:made_up/train"

    monkeypatch.setattr(tfds_examples, "TfdsDataset", Dataset)
    with pytest.raises(ValueError, match="`label` must .* one label a row; .* 'topics', a seq"):
        read_tfds("made_up", text_a="comment", label="topics")


def test_a_split_without_rows(monkeypatch):
    class Dataset:
        features = {"text": "a text", "label": "a class"}

        def __init__(self, name, data_dir):
            self.name = name

        def rows(self, split, manual_dir, check_manual_files):
            return iter([]), "tfds:made_up/train[:0]"

    monkeypatch.setattr(tfds_examples, "TfdsDataset", Dataset)
    with pytest.raises(ValueError, match=r"tfds:made_up/train\[:0\]: there must be rows"):
        read_tfds("made_up", text_a="text")


def test_nothing_stays_recorded(folders, tmp_path):
    manual = {"manual_dir": folders["manual_dir"]}
    read_tfds_sentences(data_dir=tmp_path, **manual)
    checksums = tfds_sources.import_tfds().core.download.checksums
    assert URL not in checksums.get_all_url_infos()


def test_other_bytes_are_refused_by_default(folders, tmp_path):
    message = r"squad/v1\.1/3\.0\.0 could not be prepared: NonMatchingChecksumError.*_files=False"
    with pytest.raises(RuntimeError, match=message):
        read_tfds_questions(data_dir=tmp_path, manual_dir=folders["manual_dir"])


def test_a_manual_folder_without_the_files(tmp_path):
    folder = tmp_path / "manual"
    folder.mkdir()
    message = r"`manual_dir` must hold the original files of conll2003/conll2003/1\.0\.0: conll2003"
    with pytest.raises(RuntimeError, match=message):
        read_tfds_sentences(data_dir=tmp_path, manual_dir=folder)
    message = r"`manual_dir` must hold the original files of squad/v2\.0/3\.0\.0: dev-v1\.1\.json, "
    with pytest.raises(RuntimeError, match=message):
        read_tfds_questions("squad/v2.0", data_dir=tmp_path, manual_dir=folder)


def test_wrong_arguments(folders):
    data_dir = folders["data_dir"]
    read_tfds_questions(**folders, check_manual_files=False)
    with pytest.raises(ValueError, match=r"`name` must be a dataset of TFDS.*'squad/v3'"):
        read_tfds_questions("squad/v3", data_dir=data_dir)
    message = r"`name` must be a dataset with the features id, question, context, answers\. Rec"
    with pytest.raises(ValueError, match=message):
        read_tfds_questions("conll2003", data_dir=data_dir)
    with pytest.raises(ValueError, match=r"the features tokens, ner\. Received: name='squad/v1"):
        read_tfds_sentences("squad/v1.1", data_dir=data_dir)
    with pytest.raises(ValueError, match=r"`split` must be one of .*'tran'\. Did you mean `train`"):
        read_tfds_questions("squad/v1.1", "tran", data_dir=data_dir)
