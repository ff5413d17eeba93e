"""Which models and versions a path means."""

from pathlib import Path

import pytest

from kbert.local_server.model_store import served_folders


def make(base: Path, *names: str) -> None:
    for name in names:
        (base / name).mkdir(parents=True)
        (base / name / "saved_model.pb").touch()


def seen(path: Path) -> dict[str, list[int]]:
    return {one.name: list(one.wanted()) for one in served_folders(path)}


def test_one_model_several_models_one_version(tmp_path: Path):
    make(tmp_path, "a/1", "a/12", "a/7", "b/3", "b/.tmp-4", "notes/text")
    (tmp_path / "a" / "99").mkdir()  # is being written
    assert seen(tmp_path) == {"a": [12], "b": [3]}
    assert seen(tmp_path / "a") == {"a": [12]}
    assert seen(tmp_path / "a" / "7") == {"a": [7]}


def test_numbers_that_are_no_versions(tmp_path: Path):
    make(tmp_path, "a/1")
    (tmp_path / "logs" / "2024").mkdir(parents=True)
    (tmp_path / "2024" / "1").mkdir(parents=True)
    assert seen(tmp_path) == {"a": [1]}


def test_nothing_to_serve(tmp_path: Path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(FileNotFoundError, match="`base` must be the folder of a model"):
            served_folders(path)


def test_a_configuration(tmp_path: Path):
    pytest.importorskip("tensorflow_serving", reason='pip install ".[serving]"')
    make(tmp_path, "a/1", "a/2", "a/3", "b/1", "b/2", "c/5", "c/6")
    file = tmp_path / "model.config"
    file.write_text(
        f"""
        model_config_list {{
          config {{ name: "one" base_path: "{tmp_path}/a" model_platform: "tensorflow"
            model_version_policy {{ specific {{ versions: 1 versions: 3 versions: 9 }} }}
            version_labels {{ key: "stable" value: 1 }} }}
          config {{ name: "b" base_path: "/models/b"
            model_version_policy {{ latest {{ num_versions: 2 }} }} }}
          config {{ name: "c" base_path: "/models/c" model_version_policy {{ all {{ }} }} }}
        }}
        """
    )
    # /models is a container's: of a folder that is not here, the namesake beside the file counts.
    assert seen(file) == {"one": [1, 3], "b": [1, 2], "c": [5, 6]}
    assert served_folders(file)[2].labels == {"stable": 1}


def test_a_configuration_that_is_none(tmp_path: Path):
    pytest.importorskip("tensorflow_serving", reason='pip install ".[serving]"')
    file = tmp_path / "model.config"
    for text, message in (
        ("models: 3", "must hold a ModelServerConfig"),
        ("model_config_list {}", "must list models, each with a name of its own"),
        (
            'model_config_list { config { name: "a" } config { name: "a" } }',
            r"a name of its own. Received: \['a', 'a'\]",
        ),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=message):
            served_folders(file)
