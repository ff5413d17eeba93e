"""Versions as TF Serving counts them."""

import os
from pathlib import Path

import pytest

from kbert.serving.format.version_folders import (
    complete_versions,
    find_export,
    model_name,
    new_version,
    remove_old_versions,
    versions,
)

# A date with microseconds, above what a server's 64 bits hold.
DATE = "20250101120000123456"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Model m with the versions 2 and 10 complete, 11 without a graph, and what is no version."""
    for name in ("2", "10", "11", ".12.ab.partial", "v13", "-1", "1.5", "latest", DATE):
        (tmp_path / "m" / name).mkdir(parents=True)
        if name != "11":
            (tmp_path / "m" / name / "saved_model.pb").touch()
    (tmp_path / "m" / "notes.txt").touch()
    return tmp_path


def test_only_integers_are_versions(base: Path):
    assert list(versions(base / "m")) == [2, 10, 11]  # in numerical order, not "10" < "2"
    assert versions(base / "absent") == {}


@pytest.mark.parametrize(
    "folder, name",
    [
        ("runs/hotel", "hotel"),
        ("runs/hotel/", "hotel"),
        ("minilm-squad", "minilm-squad"),
        ("runs/Größe 2.1 (neu)", "Gr__e_2.1__neu_"),
        ("runs/2024", "model_2024"),
        ("saved/topics.keras", "topics"),
        ("runs/.hidden", "model_hidden"),
        ("runs/-", "model_"),
    ],
)
def test_models_are_called_as_their_folders(folder: str, name: str, tmp_path: Path):
    assert model_name(folder) == name
    assert new_version(tmp_path, name) == (tmp_path / name / "1", 1)  # a server takes it


def test_a_model_in_this_folder_is_called_as_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "hotel").mkdir()
    monkeypatch.chdir(tmp_path / "hotel")
    assert model_name(".") == "hotel"


def test_versions_count_up_from_the_highest(base: Path):
    assert new_version(base, "m") == (base / "m" / "12", 12)
    assert new_version(base, "n") == (base / "n" / "1", 1)
    assert new_version(base, "m", 5) == (base / "m" / "5", 5)
    (base / "n" / str(2**63 - 1)).mkdir(parents=True)
    with pytest.raises(ValueError, match=r"below 2\*\*63. Received: version=9223372036854775808"):
        new_version(base, "n")


def test_a_version_that_is_there_is_never_written_again(base: Path):
    with pytest.raises(FileExistsError, match=r"must not be there yet.*version=10.*free one is 12"):
        new_version(base, "m", 10)
    (base / "m" / "0020").mkdir()  # TF Serving reads it as 20
    with pytest.raises(FileExistsError, match="0020"):
        new_version(base, "m", 20)


@pytest.mark.parametrize("version", [0, -3, True, "4", 1.0, 2**63])
def test_a_version_must_be_a_positive_integer(base: Path, version):
    with pytest.raises(ValueError, match="`version` must be an integer of at least 1"):
        new_version(base, "m", version)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../m", ".hidden", "a b", "-x", None, "ü", "2024"]
)
def test_a_name_must_fit_a_url_and_a_folder(base: Path, name):
    with pytest.raises(ValueError, match="`name` must be made of letters"):
        new_version(base, name)


def test_a_model_has_not_the_name_of_a_file_beside_it(base: Path):
    (base / "notes").touch()
    for name in ("README.md", "model.config", "monitoring.config", "notes"):
        with pytest.raises(FileExistsError, match=f"`name` must not be .*{name}"):
            new_version(base, name)


@pytest.mark.parametrize("base", [None, "", 1])
def test_the_base_is_a_path(base):
    with pytest.raises(TypeError, match=f"`base` must be the path of a folder.*base={base!r}"):
        new_version(base, "m")


def test_models_lie_in_no_model_and_in_no_run(tmp_path: Path):
    version = tmp_path / "exports" / "topics" / "1"
    version.mkdir(parents=True)
    (version / "saved_model.pb").touch()
    assert new_version(tmp_path / "exports", "topics")[1] == 2
    for wrong, what in ((version, "a version of an export"), (version.parent, "a model with its")):
        with pytest.raises(ValueError, match=f"such as .*exports. Received: .*, which is {what}"):
            new_version(wrong, "new")
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics.json").touch()
    (run / "config.yaml").touch()
    with pytest.raises(ValueError, match="such as exports. Received: .*run, which is a run"):
        new_version(run, "new")
    with pytest.raises(NotADirectoryError, match="`base` must be a folder"):
        new_version(run / "config.yaml", "new")


def test_an_export_is_found_by_its_model_or_its_version(base: Path):
    assert find_export(base / "m") == base / "m" / "10"  # 11 is not complete
    assert find_export(str(base / "m" / "2")) == base / "m" / "2"


@pytest.mark.parametrize(
    "path, message",
    [
        ("absent", "no such folder"),
        ("", r"a folder of the models \['m'\]: name one"),
        ("m/11", "a folder without one"),
    ],
)
def test_what_is_no_export_is_told(base: Path, path: str, message: str):
    with pytest.raises(FileNotFoundError, match=message):
        find_export(base / path)


def test_the_lowest_versions_go(tmp_path: Path):
    for name in ("1", "2", "10", "3", ".4", "README"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "saved_model.pb").touch()
    assert remove_old_versions(tmp_path, None) == []
    assert remove_old_versions(tmp_path, 4) == []
    assert remove_old_versions(tmp_path, 2, spare=1) == [2]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".4", "1", "10", "3", "README"]
    assert remove_old_versions(tmp_path, 2) == [1]
    assert remove_old_versions(tmp_path / "none", 1) == []


def test_only_complete_versions_are_kept_count(base: Path):
    (base / "m" / "3").touch()  # a file with the name of a version
    assert remove_old_versions(base / "m", 1) == [2]
    assert list(versions(base / "m")) == [3, 10, 11]  # 11 may still be written


def test_a_folder_that_cannot_be_read_has_no_versions(base: Path, monkeypatch: pytest.MonkeyPatch):
    """As lost+found of a disk, for who is not root (who may read all)."""
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert versions(base / "m") == {}


def test_a_version_that_cannot_be_read_is_none(base: Path, monkeypatch: pytest.MonkeyPatch):
    complete = complete_versions(base / "m")
    newest = max(complete)
    real = os.access
    forbidden = base / "m" / str(newest)
    monkeypatch.setattr(
        "os.access", lambda path, mode: Path(path) != forbidden and real(path, mode)
    )
    assert complete_versions(base / "m") == {n: p for n, p in complete.items() if n != newest}
