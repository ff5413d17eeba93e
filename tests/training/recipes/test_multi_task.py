"""Whole runs on several tasks: what they hold, and that a stop changes nothing."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.tasks.load import load
from kbert.training.callbacks.epoch_record import EpochRecord
from kbert.training.callbacks.state_saver import Saving
from kbert.training.config.multi_task_config import MultiTaskConfig
from kbert.training.recipes import recipe as recipe_module
from kbert.training.recipes.multi_task import Monitored, read_tasks_data, task_metrics
from kbert.training.run import look_first, train
from kbert.training.runs.run_directory import load_run, write_config
from tests.training.eager_steps import eager_functions, eager_steps
from tests.training.tiny_runs import Tiny

SEEN = ("mood", "names", "score")
ALL = (*SEEN, "answers")


def config(
    tiny: Tiny, output: Path, names: tuple[str, ...] = SEEN, **others: Any
) -> MultiTaskConfig:
    texts = {part: tiny.texts[part] for part in ("train", "validation", "test")}
    reading: dict[str, Any] = {"max_sequence_length": 12, "stride": 2}
    tasks: dict[str, Any] = {
        "mood": {**texts, "max_sequence_length": 16},
        "names": {**reading, "task": "ner", "train": tiny.sentences, "validation": tiny.sentences},
        "score": {"task": "regression", "train": tiny.pairs, "max_sequence_length": 16},
        "answers": {
            **reading,
            "task": "question-answering",
            "train": tiny.questions,
            "validation": tiny.questions,
            "max_question_length": 3,
        },
    }
    tasks = {name: tasks[name] for name in names}
    values: dict[str, Any] = {"tasks": tasks, "encoder": str(tiny.encoder), "output": str(output)}
    values |= {"batch_size": 16, "epochs": 2, "learning_rate": 0.01, "sampling": "square-root"}
    return MultiTaskConfig.from_dict({**values, **others})


@pytest.fixture(scope="module")
def finished(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on three tasks. Tests must not write into it."""
    with eager_steps(), eager_functions():
        return train(config(tiny, tmp_path_factory.mktemp("together") / "run"))


def test_what_a_run_holds(finished: Path):
    assert sorted(os.listdir(finished)) == [
        *("config.yaml", "environment.json", "log.txt", "metrics.json", "model", "report.json")
    ]
    assert sorted(os.listdir(finished / "model")) == sorted(SEEN)
    report = json.loads((finished / "report.json").read_text())
    mood = report["tasks"]["mood"]
    assert mood["examples"]["train"]["labels"] == {"down": 12, "up": 12}
    # 44 examples in the shares of the roots of 24, 4 and 16.
    drawn = [one["drawn_in_first_epoch"] for one in report["tasks"].values()]
    assert drawn == [20, 8, 16]
    assert report["steps"] == sum(report["steps_per_epoch"])
    text = (finished / "log.txt").read_text()
    for words in ("mood (classification): ", "names (ner): ", "epoch 2/2: loss ", "finished in"):
        assert words in text


def test_the_models_have_one_encoder(finished: Path):
    every = [load_file(path) for path in sorted(finished.glob("model/*/model.safetensors"))]
    shared = set.intersection(*(set(one) for one in every))
    encoders = [name for name in shared if "encoder_block" in name or "embeddings" in name]
    assert len(encoders) > 10
    for other in every[1:]:
        for name in encoders:
            np.testing.assert_array_equal(other[name], every[0][name])


def test_the_numbers_of_a_run(finished: Path, tiny: Tiny):
    run = load_run(finished)
    assert [epoch["epoch"] for epoch in run.metrics["epochs"]] == [1, 2]
    best = run.metrics["epochs"][run.metrics["kept_epoch"] - 1]["validation"]
    measured = ("mood_accuracy", "names_f1")
    assert set(best) == {"mean", *measured}
    assert best["mean"] == pytest.approx(np.mean([best[name] for name in measured]))
    final = run.metrics["final"]["validation"]
    for name in ("mean", *measured):
        assert final[name] == pytest.approx(best[name])
    assert "score_mse" not in final and run.metrics["monitor"] == "mean"
    # Each model by itself says what was measured.
    rows = [line.split("\t") for line in Path(tiny.texts["test"]).read_text().splitlines()[1:]]
    model = load(finished / "model" / "mood")
    predicted = model.predict([row[0] for row in rows]).argmax(-1)
    accuracy = np.mean([model.labels[i] == row[1] for i, row in zip(predicted, rows)])
    assert run.metrics["final"]["test"] == {
        "mean": accuracy,
        **{k: v for k, v in run.metrics["final"]["test"].items() if k != "mean"},
    }
    training = run.metrics["epochs"][1]["training"]
    assert {"loss", "mood_loss", "mood_accuracy", "names_loss", "score_loss"} <= set(training)


def ends_with_the_same_weights(asked: MultiTaskConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops a run after five steps, goes on with it, and compares it with one that did not stop."""
    seen: list[int] = []

    def stop(self: Any, batch: int, logs: Any = None) -> None:
        seen.append(batch)
        if len(seen) > 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(recipe_module, "Saving", partial(Saving, seconds=0))
        patched.setattr(EpochRecord, "on_train_batch_begin", stop)
        with pytest.raises(KeyboardInterrupt):
            train(asked)
    again = load_run(train(asked))
    whole = load_run(train(asked.with_values(output=f"{asked.output}-whole")))
    assert "goes on after step " in (again.directory / "log.txt").read_text()
    for name in asked.tasks or {}:
        paths = [run.model_directory / name / "model.safetensors" for run in (again, whole)]
        one, other = map(load_file, paths)
        for key, array in one.items():
            np.testing.assert_array_equal(array, other[key])
    for first, second in zip(again.metrics["epochs"], whole.metrics["epochs"], strict=True):
        assert first["training"] == second["training"]
        assert first.get("validation") == second.get("validation")


@pytest.mark.slow
def test_a_stopped_run_ends_as_if_it_had_not_been(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eagerly: None
):
    asked = config(tiny, tmp_path / "run", ("mood", "score"), sampling="annealed", epochs=3)
    ends_with_the_same_weights(asked, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 2])
def test_a_stopped_run_of_traced_steps_does_too(
    steps: int, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    given: dict[str, Any] = {"encoder_dropout": 0.1, "steps_per_execution": steps}
    given |= {"batch_tokens": 100, "batch_size": 32, "task_adapters": "lora"}
    asked = config(tiny, tmp_path / "run", ALL, **given)
    ends_with_the_same_weights(asked, monkeypatch)


@pytest.mark.slow
def test_replicas_train_to_the_same_weights(tiny: Tiny, tmp_path: Path):
    """Two parts of the CPU share each batch; only the order of sums differs."""
    given: dict[str, Any] = {"encoder_dropout": 0.0, "epochs": 1, "clip": None}
    tasks = {n: {**o, "dropout": 0.0} for n, o in (config(tiny, tmp_path).tasks or {}).items()}
    alone = config(tiny, tmp_path / "1", tasks=tasks, **given)
    runs = [train(alone), tmp_path / "2"]
    both = alone.with_values(output=str(runs[1]), strategy="mirrored", replicas=2)
    write_config(both, tmp_path)  # this process has but one device
    command = [sys.executable, "-m", "kbert.cli.main", "train", "multi-task", "--config"]
    subprocess.run([*command, str(tmp_path / "config.yaml")], check=True, capture_output=True)
    for name in SEEN:
        path = Path("model") / name / "model.safetensors"
        one, other = (load_file(run / path) for run in runs)
        for key, array in one.items():
            if not key.endswith("qkv/bias"):  # that of keys has a gradient of rounding alone
                np.testing.assert_allclose(array, other[key], atol=2e-4, err_msg=f"{name} {key}")
    first, second = (load_run(run).metrics["epochs"][0]["training"] for run in runs)
    assert first == pytest.approx(second, rel=1e-3)


def test_its_models_are_encoders_of_other_runs(finished: Path, tiny: Tiny, tmp_path: Path):
    own = tiny.config(tmp_path / "run", encoder=str(finished / "model" / "names"), epochs=1)
    with eager_steps(), eager_functions():
        assert "accuracy" in load_run(train(own)).metrics["final"]["validation"]


def test_what_does_not_fit(tiny: Tiny, tmp_path: Path):
    made = config(tiny, tmp_path / "run")
    assert made.tasks is not None
    tasks = {**made.tasks, "mood": {**made.tasks["mood"], "train": "nowhere.tsv"}}
    with pytest.raises(FileNotFoundError, match="^tasks.mood: `--train` must be a file"):
        look_first(config(tiny, tmp_path / "run", tasks=tasks))
    empty = tmp_path / "empty.tsv"
    empty.write_text("text\tlabel\n", encoding="utf-8")
    tasks["mood"] = {**made.tasks["mood"], "train": str(empty)}
    with pytest.raises(ValueError, match="^tasks.mood: .*empty.tsv"):
        read_tasks_data(config(tiny, tmp_path / "run", tasks=tasks))
    tasks["mood"] = {**made.tasks["mood"], "monitor": "cross_entropy"}
    with pytest.raises(ValueError, match="^tasks.mood: `monitor` must be a metric that rises"):
        train(config(tiny, tmp_path / "run", tasks=tasks))


def test_metrics_of_tasks():
    found = {"a": {"f1": 0.5, "loss": 3.0}, "b": {"accuracy": 1.0}}
    monitors = {"a": Monitored("f1"), "b": Monitored("accuracy")}
    assert task_metrics(found, monitors) == {
        "mean": 0.75,
        "a_f1": 0.5,
        "a_loss": 3.0,
        "b_accuracy": 1.0,
    }
    assert task_metrics({}, {}) == {}
    # Percents weigh no more than fractions.
    percents = {"a": {"f1": 0.5}, "squad": {"f1": 80.0}}
    monitors["squad"] = Monitored("f1", 100.0)
    assert task_metrics(percents, monitors)["mean"] == pytest.approx(0.65)
