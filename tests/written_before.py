"""Writes goldens/written_before.tar.xz: what users have on their disks, with what it answers.

Run from the commit whose files later ones must read, see goldens/README.md:
`python -m tests.written_before`.
"""

import json
import os
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest

import kbert
from kbert.training.run import train
from kbert.training.runs.run_directory import load_run
from tests.test_pinned_formats import TASKS, model_of
from tests.training.recipes.test_finetuning import stop_after
from tests.training.tiny_corpus import TinyCorpus
from tests.training.tiny_runs import Tiny
from tests.training.tiny_translations import TinyPairs

ARCHIVE = Path(__file__).with_name("goldens") / "written_before.tar.xz"
ANSWERS = "answers.json"
# Texts that models of runs are asked; those of the small models are in TASKS.
ASKED = {
    "classification": ["the film was good", "rain"],
    "seeds": ["the film was good", "rain"],
    "multiple-choice": (["the good"], [["was good", "was bad"]]),
    "question-answering": {"question": ["the film"], "context": ["the plot was good and red"]},
    "ner": ["the film was good", "rain"],
    "pretraining": ["the [MASK] was good"],
}


def asked(task: str) -> Any:
    """The inputs of a small model, a row of them."""
    columns = tuple([value] for value in TASKS[task][1])
    return columns if len(columns) > 1 else columns[0]


def answers(model: Any, x: Any) -> Any:
    """What a model answers, as JSON has it."""
    found = model.translations(x) if hasattr(model, "translations") else model.answers(x)
    return json.loads(json.dumps(found))


def write_models() -> dict[str, Any]:
    """A folder, a `.keras` file and an export of each task; returns the answers."""
    Path("keras").mkdir()
    for task in TASKS:
        name = task.replace(" ", "-")
        model_of(task).save_pretrained(f"models/{name}")
        model_of(task).save(f"keras/{name}.keras")
        kbert.export(model_of(task), "exports", name)
    return {task: answers(model_of(task), asked(task)) for task in TASKS}


def write_runs() -> dict[str, Any]:
    """Finished runs, and one that was stopped; returns what their models answer."""
    for name in ("data", "pairs", "corpus", "runs"):
        Path(name).mkdir()
    tiny, runs = Tiny(Path("data")), Path("runs")
    every: list[Any] = [
        tiny.config(runs / "classification", test=tiny.texts["test"]),
        tiny.config(runs / "seeds", seeds=2),
        tiny.config(
            runs / "multiple-choice",
            task="multiple-choice",
            train=tiny.choices,
            validation=None,
            epochs=1,
        ),
        tiny.reading(runs / "question-answering", "question-answering", tiny.unanswerable),
        tiny.reading(runs / "ner", "ner", tiny.sentences),
        TinyPairs(Path("pairs")).config(runs / "translation"),
    ]
    for config in every:
        train(config)
    train(TinyCorpus(Path("corpus")).config(runs / "pretraining"))
    stopped = tiny.config(Path("stopped") / "run", test=tiny.texts["test"])
    Path("stopped").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        stop_after(5, stopped, patched)
    models = {name: kbert.load(load_run(runs / name).model_directory) for name in ASKED}
    return {name: answers(models[name], x) for name, x in ASKED.items()}


def write(archive: Path) -> None:
    """Writes the archive."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # so that all paths that are written are relative
        found = {"models": write_models(), "runs": write_runs()}
        Path(ANSWERS).write_text(json.dumps(found, indent=1, sort_keys=True), encoding="utf-8")
        with tarfile.open(archive, "w:xz") as file:
            for path in sorted(Path().iterdir()):
                file.add(path, filter=_of_nobody)


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    write(ARCHIVE)
