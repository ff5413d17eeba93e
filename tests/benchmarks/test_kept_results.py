"""Results are kept beside each other, by all the settings that they depend on."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import kbert

Load = Callable[[str], ModuleType]


def test_a_result_takes_the_place_of_one_of_the_same_work(program: Load, tmp_path: Path):
    keep_row = program("side_by_side.results").keep_row
    file = tmp_path / "new" / "rows.json"
    for row in ({"seed": 1, "rate": 2, "f1": 3}, {"seed": 1, "rate": 4, "f1": 5}):
        keep_row(file, row, ("seed", "rate"))
    keep_row(file, {"seed": 1, "rate": 2, "f1": 6}, ("seed", "rate"))
    assert [row["f1"] for row in json.loads(file.read_text())] == [5, 6]


def test_a_result_without_a_setting_is_of_other_work(program: Load, tmp_path: Path):
    file = tmp_path / "rows.json"
    file.write_text('[{"seed": 1, "f1": 3}]')
    row = {"seed": 1, "rate": 2, "f1": 4}
    program("side_by_side.results").keep_row(file, row, ("seed", "rate"))
    assert [row["f1"] for row in json.loads(file.read_text())] == [3, 4]


def test_results_stay_where_a_contender_of_kbert_was_not_run(
    program: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    write, file = program("side_by_side.results").write, tmp_path / "rows.json"

    def contender(name: str, failure: str) -> Any:
        return SimpleNamespace(name=name, failure=failure, facts={})

    good = [contender("kbert", ""), contender("peer", "No module named 'torch'")]
    write(file, {"rows": [{"a": 1}]}, good, {})
    kept = json.loads(file.read_text())
    assert (kept["rows"], kept["not_run"]) == ([{"a": 1}], {"peer": "No module named 'torch'"})
    bad = [contender("kbert int8", "KeyError: 'b'"), *good]
    with pytest.raises(SystemExit, match=r"is kept. Not run: kbert int8 \(KeyError: 'b'"):
        write(file, {"rows": [{"a": 2}]}, bad, {})
    assert json.loads(file.read_text()) == kept
    assert "| 2   |" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="Not run: kbert int8"):
        write(tmp_path / "new.json", {"rows": [{"a": 2}]}, bad, {})
    assert json.loads((tmp_path / "new.json").read_text())["rows"] == [{"a": 2}]


QUESTIONS = Path(kbert.__file__).parent / "data" / "samples" / "questions" / "questions.json"
# Program -> the function that measures, and command lines whose results are of different work.
COMMANDS: dict[str, tuple[str, list[str]]] = {
    "finetuning": (
        "train",
        ["D rte:1:5", "D rte:1:3", "D rte:1:5:256", "D rte:1:5:256:8", "D rte:1:5:256:4"],
    ),
    "ner": ("train", ["D wnut17:1:5", "D wnut17:1:3", "D wikigold:1:5", "D wnut17:2-2:5"]),
    "question_answering": (
        "train",
        ["D", "D --rate 2e-4", "D --epochs 2", "D --questions 9", "D --precision float64"],
    ),
    "soft_tags": ("train", ["D", "D --rate 2e-3", "D --epochs 2"]),
    "unanswerable": (
        "train",
        ["D R", "D R --model M", "D R --questions 9", "D R --share 1", "D R --rate 1e-4"],
    ),
    "same_answers": (
        "compared",
        [str(QUESTIONS), f"{QUESTIONS} --model M", f"{QUESTIONS} --questions 3"],
    ),
    "entity_places": ("checked", ["D", "D --model M"]),
}


OTHERS = [
    "multi30k",
    "fused_branches",
    "talpco",
    "hostile_strings",
    "serving_fuzz",
    "precision_metrics",
]


@pytest.mark.parametrize("name", COMMANDS)
def test_other_settings_leave_a_result_alone(
    name: str, program: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Nothing is trained: each measurement gives its number."""
    measure, commands = COMMANDS[name]
    loaded, count = program(name), iter(range(1000))
    monkeypatch.setattr(loaded, measure, lambda *_, **__: {"measured": next(count)})
    if name == "entity_places":
        reader = SimpleNamespace(from_pretrained=lambda name: name)
        monkeypatch.setattr(loaded, "EntityRecognizer", reader)
    file = tmp_path / "rows.json"
    kept: list[list[dict[str, Any]]] = []
    for command in (*commands, commands[0]):
        monkeypatch.setattr(sys, "argv", [name, *command.split(), "--output", str(file)])
        loaded.main()
        kept.append(json.loads(file.read_text()))
    *growing, again = kept
    rows = len(growing[0])
    assert [len(rows) for rows in growing] == [rows * (i + 1) for i in range(len(commands))]
    # The first command once more takes the place of its own results, and of no others.
    assert len(again) == len(growing[-1])
    assert {row["measured"] for row in growing[0]}.isdisjoint(row["measured"] for row in again)


@pytest.mark.parametrize("name", [*COMMANDS, *OTHERS])
def test_the_results_in_the_repository_have_all_settings(name: str, program: Load):
    loaded = program(name)
    rows = json.loads(loaded.RESULTS.read_text())
    assert rows
    settings = [tuple(row[key] for key in loaded.KEY) for row in rows]
    assert len(set(settings)) == len(settings)


@pytest.fixture
def kept(
    program: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str, str], list[dict[str, Any]]]:
    """Runs a program with its results in a file; gives the rows that the file has then."""

    def run(name: str, option: str, command: str) -> list[dict[str, Any]]:
        file = tmp_path / "rows.json"
        monkeypatch.setattr(sys, "argv", [name, *command.split(), option, str(file)])
        try:
            program(name).main()
        except SystemExit as end:  # a judge's, who found nothing
            assert not end.code
        rows: list[dict[str, Any]] = json.loads(file.read_text())
        return rows

    return run


def test_hostile_strings_for_some_models_leave_the_others_rows(
    kept: Callable[..., Any], program: Load, monkeypatch: pytest.MonkeyPatch
):
    """A run with --only replaced the whole file."""
    loaded = program("hostile_strings")
    signatures = SimpleNamespace(metadata={"signatures": ["serving_default", "tokens", "words"]})
    monkeypatch.setattr(loaded, "MODELS", dict.fromkeys("ab", lambda: None))
    monkeypatch.setattr(loaded, "export", lambda *_, **__: None)
    monkeypatch.setattr(loaded, "load_export", lambda _: signatures)
    monkeypatch.setattr(loaded.resource, "setrlimit", lambda *_: None)
    monkeypatch.setattr(
        loaded, "asked", lambda _, name, count, __: {"signature": name, "rows": count, "faults": 0}
    )
    kept("hostile_strings", "--results", "--count 5 --only a b")
    rows = kept("hostile_strings", "--results", "--count 7 --only a")
    assert [tuple(row.values()) for row in rows] == [
        ("b", "serving_default", 5, 0),
        ("b", "words", 5, 0),
        ("a", "serving_default", 7, 0),
        ("a", "words", 7, 0),
    ]


def test_metrics_of_other_models_stay(
    kept: Callable[..., Any], program: Load, monkeypatch: pytest.MonkeyPatch
):
    loaded, count = program("precision_metrics"), iter(range(9))

    def measured(name: str, file: Path) -> list[dict[str, Any]]:
        settings = {"model": name, "file": file.name, "precision": "int8"}
        return [settings | {"measured": next(count)}]

    monkeypatch.setattr(loaded, "measured", measured)
    kept("precision_metrics", "--output", "m=a.tsv n=a.tsv")
    rows = kept("precision_metrics", "--output", "m=a.tsv m=b.tsv")
    assert [(row["model"], row["file"], row["measured"]) for row in rows] == [
        ("n", "a.tsv", 1),
        ("m", "a.tsv", 2),
        ("m", "b.tsv", 3),
    ]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([{"score": 0.5, "truncated": False}], []),
        ([{"label": "a", "score": 0.5}], [[(None, None, "a", None)]]),
        ([[{"start": 1, "end": 2, "label": "b"}], []], [[(1, 2, "b", None)], []]),
        ([[], []], [[], []]),  # no entity in any text
        ([{"choice": 3}], [[(None, None, None, 3)]]),
    ],
)
def test_numbers_alone_are_no_answers_that_change(
    answers: list[Any], said: list[Any], program: Load, monkeypatch: pytest.MonkeyPatch
):
    """None of a regression's numbers is another label: 0 % of them was a claim about nothing."""
    loaded = program("precision_metrics")
    task = SimpleNamespace(measure=lambda *_: [{"f1": 1.0}], rows=lambda _: [("text",)])
    monkeypatch.setattr(loaded, "task_of", lambda _: task)
    model = SimpleNamespace(answers=lambda _: answers)
    assert loaded.asked(model, None) == ({"f1": 1.0}, said)
