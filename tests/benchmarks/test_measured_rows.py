"""Rows of tables, made of what contenders have said: no contender runs here."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Load = Callable[[str], ModuleType]


@pytest.fixture
def contender(program: Load) -> Callable[..., Any]:
    """Makes a contender that has run: its facts, and the milliseconds of each round of a work."""

    def make(name: str, facts: dict[str, Any], **rounds: list[float]) -> Any:
        kind = program("side_by_side.contender").Contender
        made = object.__new__(kind)  # a whole one has a file for the errors of its process
        made.name, made.facts, made.failure = name, facts, ""
        made.answers = {
            work.replace("_", " "): [{"milliseconds": [one]} for one in times]
            for work, times in rounds.items()
        }
        return made

    return make


@pytest.fixture
def spoken(program: Load, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """translation_speed, whose pieces are words."""
    pytest.importorskip("sentencepiece")
    loaded = program("translation_speed")

    class Words:
        def __init__(self, model_file: str) -> None:
            assert model_file == "pieces"

        def encode(self, texts: list[str]) -> list[list[str]]:
            return [text.split() for text in texts]

    monkeypatch.setattr(loaded.sentencepiece, "SentencePieceProcessor", Words)
    return loaded


def test_tokens_of_a_fixed_number_of_steps_are_the_same_for_all(spoken: ModuleType, contender):
    """Of 3 steps kbert makes two words and the end, others three words."""
    own = contender("kbert float32", {"translations": ["a b"]}, translate=[10.0])
    other = contender("transformers", {"translations": ["a b c"]}, translate=[10.0])
    for steps, tokens in ((3, [3, 3]), (None, [3, 4])):
        rows = spoken.rows_of([own, other], "pieces", steps)["rows"]
        assert [row["tokens_per_second"] for row in rows] == [100 * count for count in tokens]


def test_a_fused_translator_without_its_vanilla_one_has_no_ratio(spoken: ModuleType, contender):
    fused = contender("kbert float32, fused", {"translations": ["a b"]}, translate=[30.0])
    vanilla = contender("kbert float32", {"translations": ["a b"]}, translate=[10.0])
    assert "time_by_vanilla" not in spoken.rows_of([fused], "pieces", None)["rows"][0]
    assert spoken.rows_of([vanilla, fused], "pieces", None)["rows"][1]["time_by_vanilla"] == 3.0


@pytest.fixture
def tasks(program: Load) -> ModuleType:
    """exported_tasks."""
    pytest.importorskip("onnxruntime.quantization")
    return program("exported_tasks")


def test_exports_are_beside_the_faster_way_of_their_precision(tasks: ModuleType, contender):
    """Ratios are medians of the rounds' ratios."""
    says = {"class": ["a", "b"]}
    other = {"class": ["a", "c"]}
    times = {
        "kbert": (says, [6.0, 8.0, 30.0]),
        "kbert int8, 1 thread": (other, [4.0]),
        "ONNX Runtime": (says, [9.0, 9.0, 9.0]),
        "ONNX Runtime, 1 thread": (says, [3.0, 2.0, 10.0]),
        "ONNX Runtime int8": (other, [2.0]),
        "ONNX Runtime int8, 1 thread": (other, [8.0]),
    }
    played = [contender(name, facts, **{"class": each}) for name, (facts, each) in times.items()]
    rows = {row["contender"]: row for row in tasks.rows("class", played, 2)}
    assert {name: row["times_onnx_runtime"] for name, row in rows.items()} == {
        "kbert": 3.0,
        "kbert int8, 1 thread": 2.0,
        "ONNX Runtime": 3.0,
        "ONNX Runtime, 1 thread": 1.0,
        "ONNX Runtime int8": 1.0,
        "ONNX Runtime int8, 1 thread": 4.0,
    }
    assert [rows[name]["same_answers"] for name in times] == [1.0, 0.5, 1.0, 1.0, 0.5, 0.5]
    assert (rows["kbert"]["ms_a_text"], rows["ONNX Runtime, 1 thread"]["ms_a_text"]) == (4.0, 1.5)


def test_exports_without_onnx_runtime_have_times_alone(tasks: ModuleType, contender):
    (row,) = tasks.rows("class", [contender("kbert", {"class": ["a"]}, **{"class": [6.0]})], 2)
    assert row == {"work": "class", "contender": "kbert", "ms_a_text": 3.0}


def test_every_way_has_all_threads_and_one(
    tasks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """ONNX Runtime too: kbert alone had the choice."""

    def named(name: str, module: str, works: Any, python: str, **given: Any) -> tuple[Any, ...]:
        assert given["folder"] == str(tmp_path / name.removesuffix(", 1 thread"))
        return name, python, given["intra"]

    monkeypatch.setattr(tasks, "Contender", named)
    ways = [(way, sys.executable) for way in tasks.WAYS]
    ways += [(files, "other") for files in tasks.FILES]
    assert set(tasks.contenders(tmp_path, "other")) == {
        (name + words, python, threads)
        for name, python in ways
        for words, threads in (("", 0), (", 1 thread", 1))
    }


def test_the_summary_agrees_with_the_tables_it_is_made_of(program: Load):
    loaded = program("inference_summary")
    rows = loaded.summary()
    assert rows == json.loads((loaded.RESULTS / "inference_summary.json").read_text())
    ratios = {
        (row["contender"], row["ms_a_text"]): row["times_onnx_runtime"]
        for row in loaded.rows_of("exported_tasks")
    }
    summed = [row for row in rows if row["work"].endswith("ms a text")]
    assert len(summed) == 8
    for row in summed:
        assert row["times"] == round(ratios[row["kbert"], row["by"]], 2), row["work"]


def test_the_fastest_way_of_a_peer_is_one_of_all(program: Load):
    rows = [
        {"contender": "kbert", "ms": 3.0, "times_onnx_runtime": 1.6},
        {"contender": "ONNX Runtime", "ms": 4.0, "times_onnx_runtime": 2.0},
        {"contender": "ONNX Runtime, 1 thread", "ms": 2.0, "times_onnx_runtime": 1.0},
        {"contender": "ONNX Runtime int8, 1 thread", "ms": 1.0, "times_onnx_runtime": 1.0},
    ]
    loaded = program("inference_summary")
    own, other = (loaded.best(rows, "ms", ours, "float32") for ours in (True, False))
    assert (own, other) == (rows[0], rows[2])
    made = loaded.row("class", "ms", 1.5, own, other)
    assert (made["other"], made["times"], made["reached"]) == ("ONNX Runtime, 1 thread", 1.6, "no")
