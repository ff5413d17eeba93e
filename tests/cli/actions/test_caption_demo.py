import io
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from kbert.cli.actions import caption_demo as module
from kbert.cli.actions.caption_demo import (
    SETTINGS,
    SPLIT,
    captioning_config,
    demo_captioning,
    new_network,
    show_maps,
)
from kbert.tasks.captioning.attention_maps import WordMaps
from tests.small_captioner import shapes

SMALL = (6, 2, 4)


def step_is_told(tmp_path):
    """Runs the step; what it returned."""
    file = io.StringIO()
    found = demo_captioning(tmp_path, Console(file=file, width=100))
    text = file.getvalue()
    assert "A toy: 6 drawn pictures" in text
    assert "BLEU-4 1.5, chrF 2.5, ROUGE-L 3.5 on 4" in " ".join(text.split())
    assert found["caption"] in text and str(found["picture"]) in " ".join(text.split())
    for word in found["caption"].split():
        assert word in text[text.index("Where it looked") :]
    assert found["picture"].read_bytes().startswith(b"\x89PNG")
    return found


def test_the_toy_says_that_it_is_one(tmp_path, monkeypatch):
    """The words, of a captioner that is there."""
    monkeypatch.setattr(module, "SPLIT", SMALL)
    configs = []
    monkeypatch.setattr(module, "train", lambda config: configs.append(config) or "trained")
    metrics = {"final": {"test": {"bleu_4": 1.5, "chrf": 2.5, "rouge_l": 3.5, "images": 4}}}
    run = SimpleNamespace(directory=tmp_path / "captioner", metrics=metrics)
    monkeypatch.setattr(module, "load_run", {"trained": run}.__getitem__)
    monkeypatch.setattr(module, "load_model", lambda folder: "the model")
    words = ["a", "large", "red", "star", "here"]
    shown = WordMaps(" ".join(words), words, np.ones((5, 8, 8)), shapes()[0][0])
    asked = []
    monkeypatch.setattr(module, "word_maps", lambda *given: asked.append(given) or shown)
    found = step_is_told(tmp_path)
    assert found["picture"] == tmp_path / "caption.png"
    assert found["caption"] == shown.caption and asked[0][0] == "the model"
    (config,) = configs
    assert config.split == "6,2,4" and config.train_network
    assert config.output == str(tmp_path / "captioner")


def test_the_network_fits_the_configuration(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SPLIT", SMALL)
    assert new_network().get_layer(SETTINGS["network_layer"]).output.shape == (None, 8, 8, 128)
    captioning_config(tmp_path)
    captioning_config(tmp_path)  # the pictures of an earlier demo are replaced
    assert len(list((tmp_path / "shapes" / "images").iterdir())) == sum(SMALL) < sum(SPLIT)


@pytest.mark.slow
def test_the_toy_is_trained(tmp_path, monkeypatch):
    """The step, not the quality."""
    monkeypatch.setattr(module, "SPLIT", SMALL)
    for key, value in (("epochs", 1), ("hidden_dim", 8), ("vocabulary_size", 50)):
        monkeypatch.setitem(SETTINGS, key, value)
    found = demo_captioning(tmp_path, Console(file=io.StringIO()))
    assert found["run"] == tmp_path / "captioner" and found["test"]["images"] == 4


def test_maps_as_shades():
    file = io.StringIO()
    maps = np.array([[[1.0, 0.5], [0.26, 0.0]], [[0.0, 0.0], [0.0, 0.2]]])
    show_maps(["dog", "runs"], maps, Console(file=file, width=40))
    words, first, second = (line.rstrip() for line in file.getvalue().splitlines())
    assert words.split() == ["dog", "runs"]
    assert first == "\u2588\u2588\u2592\u2592"
    assert second.split() == ["\u2591\u2591", "\u2588\u2588"]


def test_no_more_words_in_a_line_than_fit():
    file = io.StringIO()
    words = list("abcdef")
    show_maps(words, np.ones((6, 8, 8)), Console(file=file, width=80))
    lines = file.getvalue().splitlines()
    assert [line.split() for line in lines if set(line) & set(words)] == [words[:4], words[4:]]
    assert all("\u2588" * 16 in line for line in lines if not set(line) & set(words))
