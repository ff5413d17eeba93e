"""Runs in their place: alone here; two workers, of which one dies, in a test that takes long."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf

from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.distributed.collectives import own_share
from kbert.training.distributed.strategies import _elsewhere, in_its_place
from kbert.training.distributed.tf_config import worker_config
from tests.training.tiny_corpus import TinyCorpus

MULTI = {"strategy": "multi-worker"}


def config(**values):
    given = {"encoder": "e", "output": "o", "train": "t", "batch_size": 8}
    return RunConfig.from_dict({**given, **values})


def test_alone_nothing_changes():
    given = config()
    with in_its_place(given) as own:
        assert own is given and not tf.distribute.has_strategy()
    assert own_share(SimpleNamespace(strategy="one", batch_size=8)) == {"batch_size": 8}


def test_a_run_is_within_the_scope_of_its_strategy():
    with in_its_place(config(strategy="mirrored", replicas=1)) as given:
        current = tf.distribute.get_strategy()
        assert (given.batch_size, current.num_replicas_in_sync) == (8, 1)
        assert type(current) is tf.distribute.MirroredStrategy


def test_a_worker_has_its_share_of_a_batch(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", worker_config(("a:1", "b:2"), 1))
    share = own_share(SimpleNamespace(batch_size=8, **MULTI))
    assert share == {"batch_size": 4, "worker": 1, "workers": 2}


def test_what_does_not_go_together_is_told_first():
    with pytest.raises(ValueError, match="`seeds` must be 1 with strategy='multi-worker'"):
        with in_its_place(config(seeds=2, **MULTI)):
            raise AssertionError("not reached")


def test_another_worker_than_the_first_writes_a_copy(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "run.incomplete" / "states").mkdir(parents=True)
    given = config(output=str(tmp_path / "run"))
    for values, begun, copied in (
        ({}, "", True),
        ({"overwrite": True}, "", False),
        ({"overwrite": True}, "1", True),  # what this command itself has begun
    ):
        monkeypatch.setenv("KBERT_LAUNCH_BEGUN", begun)
        own = Path(_elsewhere(given.with_values(**values)).output)
        assert own.name == "run" and own.parent.parent == tmp_path / "temporary"
        assert own.with_name("run.incomplete").is_dir() == copied


def pretraining(folder, steps, *more):
    """The command that pretrains a tiny model with two workers."""
    corpus = TinyCorpus(folder)
    nothing = {"validation": None, "validation_steps": None}
    others = {"steps": steps, "save_every": 10, **nothing}
    values = corpus.values(folder / "run", **others)
    values = {name: value for name, value in values.items() if value is not None}
    PretrainingConfig.from_dict({**values, **MULTI})  # what is wrong with it is told here
    options = [
        part
        for name, value in values.items()
        if name != "text"
        for part in (f"--{name.replace('_', '-')}", str(value))
    ]
    launch = [sys.executable, "-m", "kbert.cli.main", "launch", "--workers", "2"]
    return [*launch, "pretrain", "--text", *values["text"], *options, *more]


@contextlib.contextmanager
def launched(folder, steps, repository, *more):
    """Two workers that train, from their first states on; gives launcher and log."""
    log = (folder / "log").open("w+")
    command = pretraining(folder, steps, *more)
    with subprocess.Popen(
        command, cwd=repository, stdout=subprocess.PIPE, stderr=log, text=True
    ) as launcher:
        states = folder / "run.incomplete" / "states"
        last = time.monotonic() + 300
        while not (states.is_dir() and any(states.glob("step-*[1-9]0"))):
            assert time.monotonic() < last and launcher.poll() is None, log.name
            time.sleep(0.2)
        yield launcher, log


def told(log):
    log.seek(0)
    return log.read()


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--overwrite"]])
def test_when_a_worker_is_killed_both_start_again_and_go_on(
    more, tmp_path, repository, monkeypatch
):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    if more:  # what was there before is not gone on with
        (tmp_path / "run.incomplete" / "states" / "step-5").mkdir(parents=True)
    with launched(tmp_path, 600, repository, *more) as (launcher, log):
        assert not (tmp_path / "run.incomplete" / "states" / "step-5").exists()
        assert len(list((tmp_path / "temporary").glob("kbert-worker-*"))) == 1
        os.kill(worker_of(launcher.pid, 1), signal.SIGKILL)
        printed, _ = launcher.communicate(timeout=500)
    lines = told(log)
    assert launcher.returncode == 0, lines[-3000:]
    assert json.loads(printed)["run"] == str(tmp_path / "run")
    assert "worker 1 ended with 137" in lines
    assert "all 2 workers must answer as long as a training goes on" in lines
    assert "goes on after step" in lines
    assert not list((tmp_path / "temporary").glob("kbert-*"))
    assert (tmp_path / "run" / "model").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["the second worker", "the launcher"])
def test_when_one_worker_is_asked_to_stop_all_do_at_the_same_step(whom, tmp_path, repository):
    with launched(tmp_path, 100_000, repository) as (launcher, log):
        if whom == "the launcher":
            launcher.send_signal(signal.SIGTERM)
        else:
            os.kill(worker_of(launcher.pid, 1), signal.SIGTERM)
            last = time.monotonic() + 120
            while "start again (1 of 3 times)" not in told(log):
                assert time.monotonic() < last and launcher.poll() is None, told(log)[-3000:]
                time.sleep(0.2)
            launcher.send_signal(signal.SIGTERM)
        launcher.communicate(timeout=120)
    lines = told(log)
    steps = re.findall(r"\[(\d)\] .*stopped by SIGTERM after step (\d+)", lines)
    assert {number for number, _ in steps} == {"0", "1"}, lines[-3000:]
    assert len({step for _, step in steps[:2]}) == 1
    assert "must answer as long as" not in lines.split("start again")[0]


def worker_of(launcher, number):
    """The process of a worker of a launcher."""
    listed = Path(f"/proc/{launcher}/task/{launcher}/children").read_text()
    children = [int(pid) for pid in listed.split()]
    for child in children:
        variables = Path(f"/proc/{child}/environ").read_text().split("\0")
        found = next(v for v in variables if v.startswith("TF_CONFIG="))
        if json.loads(found.removeprefix("TF_CONFIG="))["task"]["index"] == number:
            return child
    raise AssertionError(f"no worker {number} among {children}")
