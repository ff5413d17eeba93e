"""The ladder of translation models: its sizes, its parts by length, its table."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kbert.text.subword_training import train_subwords

Load = Callable[[str], ModuleType]
SOURCES = ["a b c d e f", "a b", "a b c", "a b c d e"]
TARGETS = ["one two three four five", "one two three four", "six seven eight nine", "x y z w v"]


def test_parts_by_length(program: Load):
    rungs = program("side_by_side.ladder_rungs")
    split = SimpleNamespace(sources=SOURCES, targets=TARGETS)
    found = ["wrong", TARGETS[1], TARGETS[2], "also wrong"]
    parts = rungs.by_length(found, split, 2)
    assert [part["words"] for part in parts] == [2.5, 5.5]
    assert parts[0]["bleu"] == 100 and parts[1]["bleu"] < 1


@pytest.mark.parametrize("rung", ["no attention", "bahdanau", "convs2s", "transformer"])
def test_all_have_about_ten_million_weights(program: Load, rung: str):
    rungs = program("side_by_side.ladder_rungs")
    from kbert.architectures import encoder_decoder_class

    found = rungs.RUNGS[rung]
    sizes = {**rungs.SIZES[found.architecture], **found.arguments}
    model = encoder_decoder_class(found.architecture)(10_000, **sizes)
    assert 9.5e6 < sum(weight.value.shape.num_elements() for weight in model.weights) < 10.5e6


def test_a_rung_begins_with_the_weights_of_another(
    program: Load, tmp_path: Path, monkeypatch: Any
):
    rungs = program("side_by_side.ladder_rungs")
    small = {"hidden_dim": 8, "num_encoder_layers": 1, "num_decoder_layers": 1, "num_heads": 2}
    monkeypatch.setitem(rungs.SIZES, "transformer", {**small, "intermediate_dim": 8})
    pieces = train_subwords(
        [SOURCES * 20, TARGETS * 20], tmp_path / "pieces.model", vocabulary_size=40
    )
    first = rungs.made("transformer 24", pieces, 0.2, "float32")
    first.save_pretrained(tmp_path / "first")
    name = "transformer 24+12"
    second = rungs.made(name, pieces, 0.2, "float32", tmp_path / "first")
    for ours, theirs in zip(second.transformer.weights, first.transformer.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    other = rungs.made(name, pieces, 0.2, "float32")
    assert any(np.any(a != b) for a, b in zip(other.get_weights(), first.get_weights()))
    assert rungs.RUNGS[rungs.RUNGS[name].start].architecture == rungs.RUNGS[name].architecture


def row(seed: int, bleu: float, direction: str = "de-en") -> dict[str, Any]:
    scores = {"tokenized_lowercase_bleu": bleu, "bleu": bleu - 1, "chrf": 50.0}
    lengths = [{"words": 8.0, "bleu": bleu + 2}, {"words": 20.0, "bleu": bleu - 4}]
    known = {"rung": "bahdanau", "direction": direction, "seed": seed, "weights": 9_654_544}
    facts = {"epochs": 12, "tokens": 2048, "dropout": 0.3, "greedy": bleu - 0.5}
    facts |= {"by_length": lengths, "by_third": [bleu + 2, bleu, bleu - 4]}
    return {**known, **facts, "test_2016_flickr": scores}


def test_the_summary_and_its_picture(program: Load, tmp_path: Path, monkeypatch: Any):
    summary = program("ladder_summary")
    results = tmp_path / "ladder.json"
    results.write_text(json.dumps([row(1, 30.0), row(2, 32.0), row(1, 28.0, "en-de")]))
    monkeypatch.setattr(summary, "SUMMARY", tmp_path / "summary.json")
    figure = tmp_path / "lengths.svg"
    monkeypatch.setattr("sys.argv", ["x", str(figure), "--results", str(results)])
    summary.main()
    first, second = json.loads((tmp_path / "summary.json").read_text())["rows"]
    assert (first["seeds"], first["bleu, beam 5"], first["error"]) == (2, 31.0, 1.0)
    assert (first["longest minus shortest"], second["error"]) == (-6.0, None)
    assert "words of the source" in figure.read_text()
