import os
from pathlib import Path

import pytest

from kbert.storage import files as module
from kbert.storage.files import (
    MODEL_FILES,
    atomic_directory,
    remove_atomically,
    remove_leftovers,
    rename_directory,
    write_atomically,
)


def _tree(folder: Path) -> list[str]:
    """All names below a folder, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_folder_appears_when_the_block_ends(tmp_path: Path) -> None:
    target = tmp_path / "a" / "model"
    with atomic_directory(target) as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "x.txt").write_text("x")
        assert not target.exists()
        assert folder.parent == target.parent
    assert _tree(tmp_path) == ["a", "a/model", "a/model/deep", "a/model/deep/x.txt"]
    # Readable by whoever may read other new folders here (mkdtemp would give 0700).
    plain = tmp_path / "plain"
    plain.mkdir()
    assert target.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failed_block_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error, match="no luck"):
        with atomic_directory(tmp_path / "model") as folder:
            (folder / "x.txt").write_text("x")
            raise error("no luck")
    assert _tree(tmp_path) == []


def test_an_existing_folder_is_an_error_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    for overwrite in (False, "yes"):
        with pytest.raises(FileExistsError, match="must not exist yet, unless overwrite=True"):
            with atomic_directory(tmp_path / "model", overwrite):
                pytest.fail("the block must not run")
    assert _tree(tmp_path) == ["model"]


def test_a_folder_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError, match="must not exist yet"):
        with atomic_directory(tmp_path / "model") as folder:
            (folder / "x.txt").write_text("ours")
            (tmp_path / "model").mkdir()
            (tmp_path / "model" / "x.txt").write_text("theirs")
    assert _tree(tmp_path) == ["model", "model/x.txt"]
    assert (tmp_path / "model" / "x.txt").read_text() == "theirs"


def test_replacing_leaves_only_the_new_folder(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old.txt").write_text("old")
    with atomic_directory(target, overwrite=True) as folder:
        (folder / "new.txt").write_text("new")
        assert (target / "old.txt").read_text() == "old"
    assert _tree(tmp_path) == ["model", "model/new.txt"]


def test_a_model_replaces_nothing_but_a_model(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    with atomic_directory(tmp_path / "notes", True, MODEL_FILES) as folder:  # it is empty
        (folder / "precious").touch()
    with pytest.raises(FileExistsError, match="`path` must be new, empty, or a saved .*notes"):
        with atomic_directory(tmp_path / "notes", True, MODEL_FILES):
            pass
    assert [file.name for file in (tmp_path / "notes").iterdir()] == ["precious"]
    (tmp_path / "notes" / "model.safetensors").touch()
    with atomic_directory(tmp_path / "notes", True, MODEL_FILES) as folder:
        (folder / "new").touch()
    assert [file.name for file in (tmp_path / "notes").iterdir()] == ["new"]


def test_a_folder_is_named_by_a_path() -> None:
    with pytest.raises(TypeError, match="`path` must be the path of a folder. Received: path=None"):
        with atomic_directory(None):
            pass


def test_a_failed_replacement_keeps_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old.txt").write_text("old")
    with pytest.raises(RuntimeError, match="no luck"):
        with atomic_directory(target, overwrite=True) as folder:
            (folder / "new.txt").write_text("new")
            raise RuntimeError("no luck")
    assert _tree(tmp_path) == ["model", "model/old.txt"]


def test_a_failed_rename_puts_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old.txt").write_text("old")
    rename = os.rename

    def failing(source: Path, to: Path) -> None:
        if str(source).endswith(".partial"):
            raise OSError("disk on fire")
        rename(source, to)

    monkeypatch.setattr(module.os, "rename", failing)
    with pytest.raises(OSError, match="disk on fire"):
        with atomic_directory(target, overwrite=True) as folder:
            (folder / "new.txt").write_text("new")
    assert _tree(tmp_path) == ["model", "model/old.txt"]


def test_a_link_is_replaced_and_its_folder_kept(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x.txt").write_text("x")
    (tmp_path / "model").symlink_to(tmp_path / "real")
    with atomic_directory(tmp_path / "model", overwrite=True) as folder:
        (folder / "new.txt").write_text("new")
    assert not (tmp_path / "model").is_symlink()
    assert _tree(tmp_path) == ["model", "model/new.txt", "real", "real/x.txt"]


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("x")
    with pytest.raises(NotADirectoryError, match="`path` must be a folder. Received a file"):
        with atomic_directory(tmp_path / "model", overwrite=True):
            pytest.fail("the block must not run")
    with pytest.raises(NotADirectoryError, match="model` must be a folder. Received: a file there"):
        with atomic_directory(tmp_path / "model" / "below"):
            pytest.fail("the block must not run")
    with pytest.raises(NotADirectoryError, match="/b` must be a folder. Received: a file there"):
        write_atomically(tmp_path / "model" / "b" / "c", "y")


def test_a_relative_path_survives_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with atomic_directory("model") as folder:
        monkeypatch.chdir(tmp_path / "elsewhere")
        (folder / "x.txt").write_text("x")
    assert _tree(tmp_path) == ["elsewhere", "model", "model/x.txt"]


def test_write_atomically_bytes_and_text(tmp_path: Path) -> None:
    write_atomically(tmp_path / "new" / "a.bin", b"\x00\r\n")
    write_atomically(str(tmp_path / "b.txt"), "é\r\n")
    write_atomically(tmp_path / "b.txt", "ü\r\n")
    assert (tmp_path / "new" / "a.bin").read_bytes() == b"\x00\r\n"
    assert (tmp_path / "b.txt").read_bytes() == "ü\r\n".encode()
    assert _tree(tmp_path) == ["b.txt", "new", "new/a.bin"]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("old")

    def failing(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(module.os, "fsync", failing)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert _tree(tmp_path) == ["a.txt"]


def test_write_atomically_to_a_folder(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="`path` must be a file. Received a folder"):
        write_atomically(tmp_path, "x")


def test_a_folder_goes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model" / "deep").mkdir(parents=True)
    (tmp_path / "model" / "deep" / "x.txt").write_text("x")
    seen: list[list[str]] = []
    delete = module.shutil.rmtree

    def watched(*arguments: object, **options: object) -> None:
        seen.append(os.listdir(tmp_path))
        delete(*arguments, **options)

    monkeypatch.setattr(module.shutil, "rmtree", watched)
    remove_atomically(tmp_path / "model")
    # Before the first file went, its name was gone.
    assert len(seen) == 1 and len(seen[0]) == 1 and seen[0][0].startswith(".model.")
    assert _tree(tmp_path) == []
    with pytest.raises(FileNotFoundError):
        remove_atomically(tmp_path / "model")
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotADirectoryError, match="`path` must be a folder"):
        remove_atomically(tmp_path / "file")


def test_leftovers_go_and_nothing_else(tmp_path: Path) -> None:
    left = [".1.0123456789ab.partial", ".kbert.json.0123456789ab.partial", ".2.0123456789ab.old"]
    kept = [".hidden", "1", ".1.0123.partial", ".2.0123456789ab.new", "3.0123456789ab.old"]
    for name in (*left, *kept):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text("x")
    (tmp_path / left[1] / "x.txt").unlink()
    (tmp_path / left[1]).rmdir()
    (tmp_path / left[1]).write_text("a file")
    assert remove_leftovers(tmp_path) == sorted(left)
    assert sorted(os.listdir(tmp_path)) == sorted(kept)
    assert remove_leftovers(tmp_path / "none") == []


def test_what_a_killed_block_leaves_is_a_leftover(tmp_path: Path) -> None:
    context = atomic_directory(tmp_path / "model")
    folder = context.__enter__()
    assert remove_leftovers(tmp_path) == [folder.name]


def test_a_whole_folder_gets_its_name(tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "lock").touch()
        (tmp_path / "new" / f"file{number}").touch()
        if number:
            with pytest.raises(FileExistsError, match="must not exist yet, unless overwrite"):
                rename_directory(tmp_path / "new", tmp_path / "name")
        rename_directory(tmp_path / "new", tmp_path / "name", bool(number), without="lock")
        assert os.listdir(tmp_path) == ["name"]
        assert os.listdir(tmp_path / "name") == [f"file{number}"]
