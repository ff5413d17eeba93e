"""TFDS datasets, prepared without a network from the GLUE fixtures packed as the official zips."""

import shutil
import zipfile
from pathlib import Path

import pytest

from kbert.data import tfds_dataset
from kbert.data.classification.glue_tasks import read_glue
from kbert.data.tfds_dataset import tfds_split
from kbert.data.tfds_examples import read_tfds

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
FIXTURES = Path(__file__).parent / "fixtures" / "glue"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """An empty TFDS folder, and a folder with original files under their original names."""
    manual = tmp_path_factory.mktemp("manual")
    for task in ("SST-2", "STS-B"):
        with zipfile.ZipFile(manual / f"{task}.zip", "w") as archive:
            for file in sorted((FIXTURES / task).iterdir()):
                archive.write(file, f"{task}/{file.name}")
    shutil.copy(FIXTURES / "AX" / "AX.tsv", manual / "tsvsWithoutLabels_AX.tsv")
    return {"data_dir": tmp_path_factory.mktemp("tfds"), "manual_dir": manual}


@pytest.mark.parametrize("task, split", [("sst2", "dev"), ("stsb", "train"), ("ax", "test")])
def test_tfds_and_files_agree(folders, task, split):
    examples = read_tfds(f"glue/{task}", split, **folders, check_manual_files=False)
    expected = read_glue(task, FIXTURES, split)
    assert examples.text_a == expected.text_a
    assert examples.text_b == expected.text_b
    if task == "stsb":
        assert examples.labels == pytest.approx(expected.labels)
    else:
        assert examples.labels == expected.labels
    assert examples.ids == [str(i) for i in range(len(expected))]
    assert examples.lines == list(range(1, len(expected) + 1))
    assert examples.source.startswith(f"tfds:glue/{task}/")


def test_a_prepared_dataset_needs_no_files(folders):
    arguments = {"data_dir": folders["data_dir"]}
    read_tfds("glue/sst2", **folders, check_manual_files=False)
    assert len(read_tfds("glue/sst2", "train[:2]", **arguments)) == 2
    assert read_tfds("glue/sst2", "test", **arguments).labels is None
    # By another feature, as for datasets that are not GLUE's: the label becomes its digits.
    examples = read_tfds("glue/sst2", "train", **arguments, text_a="sentence", label="idx")
    assert examples.labels == ["0", "1", "2"]
    with pytest.raises(ValueError, match="`text_a` must name a text feature of glue/sst2. .*'idx'"):
        read_tfds("glue/sst2", "train", **arguments, text_a="idx")


def test_the_recorded_checksums_come_back(folders, tmp_path):
    before = dict(tfds_dataset.import_tfds().builder("glue/sst2", data_dir=tmp_path).url_infos)
    read_tfds("glue/sst2", data_dir=tmp_path, check_manual_files=False, **_only_manual(folders))
    assert tfds_dataset.import_tfds().builder("glue/sst2", data_dir=tmp_path).url_infos == before


def test_files_with_other_bytes_are_refused_by_default(folders, tmp_path):
    message = r"glue/sst2/2\.0\.0 could not be prepared: NonMatchingChecksumError.*SST-2\.zip.*"
    with pytest.raises(RuntimeError, match=message + r"check_manual_files=False"):
        read_tfds("glue/sst2", data_dir=tmp_path, **_only_manual(folders))


def test_a_manual_folder_without_the_files(folders, tmp_path):
    message = r"`manual_dir` must hold the original files of glue/wnli/2\.0\.0: WNLI\.zip\. Rec"
    with pytest.raises(RuntimeError, match=message):
        read_tfds("glue/wnli", data_dir=tmp_path, **_only_manual(folders))


def test_no_network_tells_how_to_provide_the_files(tmp_path, monkeypatch):
    tfds = tfds_dataset.import_tfds()

    def fail(*unused_arguments, **unused_options):
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr(tfds.core.DatasetBuilder, "download_and_prepare", fail)
    message = (
        r"glue/rte/2\.0\.0 could not be prepared: ConnectionError: Name or service not known\. "
        r"Without a network, put the dataset's original files \(RTE\.zip\) into a folder, and pass "
        r"it as `manual_dir`.*Received: manual_dir=None"
    )
    with pytest.raises(RuntimeError, match=message):
        read_tfds("glue/rte", data_dir=tmp_path)


@pytest.mark.parametrize(
    "split, known, expected",
    [
        ("dev", ["train", "validation"], "validation"),
        ("validation[:10]", ["train", "dev"], "dev[:10]"),
        ("dev", ["dev", "validation"], "dev"),
        ("dev_matched", ["train", "validation_matched"], "validation_matched"),
        ("dev+train", ["train", "validation"], "validation+train"),
        ("dev[5:]+train", ["train", "validation"], "validation[5:]+train"),
        ("train+test", ["train"], "train+test"),
        ("all", ["train"], "all"),
    ],
)
def test_dev_and_validation_mean_whichever_is_there(split, known, expected):
    assert tfds_split("glue/mnli", split, known) == expected


def test_wrong_arguments(folders):
    data_dir = folders["data_dir"]
    read_tfds("glue/sst2", **folders, check_manual_files=False)
    with pytest.raises(ValueError, match=r"`name` must be a dataset of TFDS.*'no_such_set'"):
        read_tfds("no_such_set", data_dir=data_dir)
    with pytest.raises(ValueError, match=r"`name` must be a dataset of TFDS.*'glue/sst9'"):
        read_tfds("glue/sst9", data_dir=data_dir)
    with pytest.raises(ValueError, match=r"`split` must be one of train, .*'tset'\. Did you mean"):
        read_tfds("glue/sst2", "tset", data_dir=data_dir)
    with pytest.raises(ValueError, match=r"`text_a` must be one of .*'sentense'\. Did you mean"):
        read_tfds("glue/sst2", data_dir=data_dir, text_a="sentense")
    with pytest.raises(ValueError, match=r"`label` must be one of the features .*label='lbl'"):
        read_tfds("glue/sst2", data_dir=data_dir, label="lbl")
    with pytest.raises(ValueError, match=r"`text_a` must name a text feature of imdb_reviews"):
        read_tfds("imdb_reviews", data_dir=data_dir)


def _only_manual(folders):
    return {"manual_dir": folders["manual_dir"]}
