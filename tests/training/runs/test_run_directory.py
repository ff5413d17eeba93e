import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.runs.run_directory import (
    check_output,
    is_run,
    load_run,
    run_directory,
    stopped_run,
    training_facts,
    write_config,
    write_json,
)

CONFIG = RunConfig.from_dict({"train": "a.tsv", "encoder": "e", "output": "o", "epochs": 9})


def fill(folder: Path, value: int = 1) -> None:
    write_config(CONFIG, folder)
    write_json({"value": value}, folder / "metrics.json")


def test_a_run_gets_its_name_when_it_is_whole(tmp_path):
    output = tmp_path / "deep" / "run"
    with run_directory(output) as folder:
        assert folder.name == "run.incomplete"
        fill(folder)
        assert not output.exists()
        with pytest.raises(FileNotFoundError, match="a finished run: only .*run.incomplete"):
            load_run(output)
    assert sorted(os.listdir(output)) == ["config.yaml", "metrics.json"]
    assert os.listdir(output.parent) == ["run"]
    run = load_run(output)
    assert run.config == CONFIG and run.metrics == {"value": 1}


def test_a_stopped_run_stays_incomplete_and_is_never_a_run(tmp_path):
    output = tmp_path / "run"
    with pytest.raises(RuntimeError, match="power"):
        with run_directory(output) as folder:
            fill(folder)
            raise RuntimeError("power")
    partial = tmp_path / "run.incomplete"
    assert not output.exists() and (partial / "metrics.json").is_file()
    renamed = tmp_path / "renamed"
    for folder in (output, partial):
        with pytest.raises(FileNotFoundError, match="a run that was stopped before its end"):
            load_run(folder)
        assert is_run(folder)
    partial.rename(renamed)
    with pytest.raises(FileNotFoundError, match="renamed` must be a finished run"):
        load_run(renamed)


def test_folders_are_told_as_they_were_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match="power"):
        with run_directory("runs/a") as folder:
            assert str(folder) == "runs/a.incomplete"
            raise RuntimeError("power")
    assert str(stopped_run("runs/a")) == "runs/a.incomplete"
    (tmp_path / "b").mkdir()
    monkeypatch.chdir("b")
    with run_directory(".", overwrite=True) as folder:  # a folder needs a name to be renamed
        assert folder == tmp_path / "b.incomplete"


def test_what_a_stopped_run_left_is_there_for_the_next(tmp_path):
    output = tmp_path / "run"
    assert stopped_run(output) is None
    with pytest.raises(RuntimeError, match="power"):
        with run_directory(output, resume=True) as folder:  # nothing to go on with: it begins
            fill(folder)
            raise RuntimeError("power")
    assert stopped_run(output) == tmp_path / "run.incomplete"
    with pytest.raises(FileExistsError, match="Set resume to go on with it, or overwrite"):
        check_output(output, overwrite=False, resume=False)
    with run_directory(output, resume=True) as folder:
        assert sorted(os.listdir(folder)) == ["INCOMPLETE", "config.yaml", "metrics.json"]
    assert load_run(output).config == CONFIG and stopped_run(output) is None
    with pytest.raises(FileExistsError, match="`output` must not exist yet"):
        check_output(output, overwrite=False, resume=True)


def test_the_configuration_of_a_run_is_that_of_its_task(tmp_path):
    config = TranslationConfig.from_dict({"train": "a.tsv", "output": "o", "beam_size": 3})
    with run_directory(tmp_path / "run") as folder:
        write_config(config, folder)
        write_json({}, folder / "metrics.json")
    assert load_run(tmp_path / "run").config == config


def test_a_killed_process_leaves_no_run(tmp_path):
    code = (
        "import sys, time\n"
        "from kbert.training.runs.run_directory import run_directory\n"
        "with run_directory(sys.argv[1]) as folder:\n"
        "    (folder / 'metrics.json').write_text('{}')\n"
        "    (folder / 'config.yaml').write_text('')\n"
        "    print('written', flush=True)\n"
        "    time.sleep(60)\n"
    )
    output = tmp_path / "run"
    command = [sys.executable, "-c", code, str(output)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "written\n"
        with pytest.raises(FileExistsError, match="is being written by another process"):
            with run_directory(output, overwrite=True):
                raise AssertionError("not reached")
        process.send_signal(signal.SIGKILL)
        process.wait()
    with pytest.raises(FileNotFoundError, match="stopped before its end"):
        load_run(output)
    with pytest.raises(FileExistsError, match="Set resume to go on with it, or overwrite"):
        check_output(output, overwrite=False)
    with run_directory(output, overwrite=True) as folder:
        assert os.listdir(folder) == ["INCOMPLETE"]  # nothing of the stopped run is taken over
        fill(folder, 2)
    assert load_run(output).metrics == {"value": 2}


def test_an_old_run_stays_until_the_new_one_is_whole(tmp_path):
    output = tmp_path / "run"
    with run_directory(output) as folder:
        fill(folder, 1)
    with pytest.raises(FileExistsError, match="`output` must not exist yet, unless overwrite"):
        check_output(output, overwrite=False)
    with run_directory(output, overwrite=True) as folder:
        fill(folder, 2)
        assert load_run(output).metrics == {"value": 1}
    assert load_run(output).metrics == {"value": 2}
    assert os.listdir(tmp_path) == ["run"]


def test_overwrite_takes_runs_only(tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to_anna.txt").write_text("dear")
    with pytest.raises(FileExistsError, match="or an old run: nothing else is overwritten"):
        check_output(tmp_path / "letters", overwrite=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="`output` must be a folder. Received a file"):
        check_output(tmp_path / "file", overwrite=True)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="Received a link that leads nowhere: output="):
        check_output(tmp_path / "link", overwrite=False, resume=True)


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="`directory` must be a run directory, with config"):
        load_run(tmp_path)
    assert not is_run(tmp_path)
    fill(tmp_path)
    (tmp_path / "metrics.json").write_text("{")
    with pytest.raises(ValueError, match="metrics.json` must be a JSON file"):
        load_run(tmp_path)
    (tmp_path / "metrics.json").write_text("[]")
    with pytest.raises(ValueError, match="metrics.json` must hold a JSON object"):
        load_run(tmp_path)


def test_a_run_without_model_says_so(tmp_path):
    fill(tmp_path)
    with pytest.raises(FileNotFoundError, match="of a grid, only the winner keeps one"):
        _ = load_run(tmp_path).model_directory


def test_nan_is_no_json(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json({"a": float("nan")}, tmp_path / "a.json")
    write_json({"ü": 1}, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"ü": 1}


def test_what_a_killed_process_was_writing_does_not_stay(tmp_path):
    half = tmp_path / "run.incomplete" / ".model.0123456789ab.partial"
    half.mkdir(parents=True)
    with run_directory(tmp_path / "run", resume=True) as folder:
        fill(folder)
    assert sorted(os.listdir(tmp_path / "run")) == ["config.yaml", "metrics.json"]


def test_a_full_disk_is_told(tmp_path):
    with pytest.raises(OSError, match="no room left to write .No space left on device.*goes on"):
        with run_directory(tmp_path / "run") as folder:
            fill(folder)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert (tmp_path / "run.incomplete" / "metrics.json").is_file()
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    of_copied = shutil.Error([("a", "b", str(full))])  # of shutil.copytree
    with pytest.raises(OSError, match="^there is no room left to write .No space left on device.*"):
        with run_directory(tmp_path / "copied") as folder:
            raise of_copied
    with pytest.raises(shutil.Error, match="denied"):
        with run_directory(tmp_path / "denied") as folder:
            raise shutil.Error([("a", "b", "[Errno 13] Permission denied")])
    with pytest.raises(OSError) as raised:
        with run_directory(tmp_path / "seeds", overwrite=True) as folder:
            with run_directory(folder / "seed-1", resume=True):
                raise full
    told = str(raised.value)
    assert told.count("no room left") == 1 and "seed-1" not in told
    assert "(No space left on device). What " in told and "without overwrite" in told
    with pytest.raises(PermissionError, match="^no$"):
        with run_directory(tmp_path / "other"):
            raise PermissionError("no")


def test_facts_for_a_card_name_no_folder(tmp_path):
    fill(tmp_path)
    final = {"test": {"accuracy": 0.5, "labels": ["a"]}, "epoch": 3}
    write_json({"final": final}, tmp_path / "metrics.json")
    source = f"{tmp_path}/a.tsv, {tmp_path}/b.tsv"
    write_json({"examples": {"train": {"count": 7, "source": source}}}, tmp_path / "report.json")
    assert training_facts(tmp_path) == {
        "data": [{"part": "train", "examples": 7, "source": "a.tsv, b.tsv"}],
        "metrics": {"test": {"accuracy": 0.5}},
    }
    assert training_facts(tmp_path / "no run") is None
