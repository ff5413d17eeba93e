import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from kbert.cli.actions import demo as module
from kbert.cli.actions.demo import SHOWN, TRANSLATOR_SETTINGS, demo_translation, translation_config
from kbert.data.samples import sample_path
from kbert.data.translation.parallel_text import read_parallel_tsv


def test_what_is_shown_is_held_out():
    test = read_parallel_tsv(sample_path("translation/test.tsv"))
    assert set(SHOWN) <= set(test.sources)
    assert not set(SHOWN) & set(read_parallel_tsv(sample_path("translation/train.tsv")).sources)


def toy_is_told(tmp_path):
    """Runs the step; what it returned."""
    file = io.StringIO()
    found = demo_translation(tmp_path, Console(file=file, width=120))
    text = file.getvalue()
    words = found["translations"][0].split()
    assert "A toy:" in text and "Gestern hat meine Mutter in der Stadt" in text and "BLEU" in text
    # The alignment: a line for each word, after the headings.
    assert "comes from" in text and "whole source" in text
    lines = text[text.index("whole source") :].splitlines()[1 : len(words) + 2]
    assert [line.split()[0] for line in lines] == [*words, "</s>"]
    assert len(found["translations"]) == len(SHOWN) and found["test"]["sentences"] == 75
    return found


def test_the_toy_says_that_it_is_one(finished_translation, tmp_path, monkeypatch):
    """The words, of a translator that is there."""
    configs = []
    monkeypatch.setattr(module, "train", lambda config: configs.append(config) or "trained")
    metrics = {"final": {"test": {"bleu": 1.5, "chrf": 2.5, "sentences": 75}}}
    run = SimpleNamespace(directory=finished_translation, metrics=metrics)
    monkeypatch.setattr(module, "load_run", {"trained": run}.__getitem__)
    toy_is_told(tmp_path)
    assert configs == [translation_config(tmp_path)]
    assert configs[0].output == str(tmp_path / "translator")


@pytest.mark.slow
def test_the_toy_is_trained(tmp_path, monkeypatch):
    """The step, not the quality."""
    for key, value in (("epochs", 1), ("hidden_dim", 16), ("intermediate_dim", 16)):
        monkeypatch.setitem(TRANSLATOR_SETTINGS, key, value)
    assert toy_is_told(tmp_path)["run"] == tmp_path / "translator"
    assert translation_config(tmp_path).epochs == 1
