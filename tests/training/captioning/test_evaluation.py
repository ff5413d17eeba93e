from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from kbert.data.captions.captioned_images import CaptionExamples
from kbert.metrics.bleu import caption_metrics
from kbert.tasks.captioning.model import Captioner
from kbert.tasks.load import load
from kbert.training.captioning.evaluation import (
    MeasuredCaptions,
    captioning_lines,
    captioning_report,
    measure_captioner,
    teacher_forced,
)
from kbert.training.captioning.examples import CaptioningData, read_captioning_data
from kbert.training.runs.run_directory import load_run
from tests.training.tiny_captions import TinyCaptions


@pytest.fixture(scope="module")
def model(finished_captioning: Path) -> Captioner:
    return load(load_run(finished_captioning).model_directory)


@pytest.fixture(scope="module")
def data(tiny_captions: TinyCaptions, finished_captioning: Path) -> CaptioningData:
    return read_captioning_data(load_run(finished_captioning).config)


def test_the_next_piece_by_hand(model: Captioner, data: CaptioningData):
    """Mean cross-entropy and accuracy of all pieces of four images, from the logits."""
    part = data.parts["test"]
    packed = model.batching.pack(part.paths, part.captions)
    found = teacher_forced(model, packed)
    assert set(found) == {"loss", "perplexity", "accuracy"}
    (inputs, targets), *rest = model.dataset(packed, batch_size=64)
    assert not rest
    logs = tf.nn.log_softmax(model(inputs)["logits"]).numpy()
    rows, places = np.nonzero(targets.numpy() >= 0)
    truth = targets.numpy()[rows, places]
    entropy = -logs[rows, places, truth].mean()
    assert found["loss"] == pytest.approx(entropy, rel=1e-4)
    assert found["perplexity"] == pytest.approx(np.exp(entropy), rel=1e-4)
    assert found["accuracy"] == pytest.approx((logs.argmax(-1)[rows, places] == truth).mean())


def test_all_metrics_of_a_part(model: Captioner, data: CaptioningData, tmp_path: Path):
    part = data.parts["test"]
    metrics, captions = measure_captioner(model, part, str(tmp_path / "features"))
    assert captions == model.captions(part.paths) and metrics["images"] == 4
    known = caption_metrics(captions, part.captions)
    assert {name: metrics[name] for name in known} == known
    forced = teacher_forced(model, model.batching.pack(part.paths, part.captions))
    # Features in a folder are as those in memory.
    assert metrics["loss"] == pytest.approx(forced["loss"], rel=1e-5)
    assert len(list((tmp_path / "features").iterdir())) == 1


@pytest.mark.slow
def test_epochs_are_measured_with_the_search_only_on_wish(model: Captioner, data: CaptioningData):
    part = data.parts["validation"]
    packed = model.batching.pack(part.paths, part.captions)
    forced = {"loss", "perplexity", "accuracy"}
    assert set(MeasuredCaptions(packed, part, False).measured(model)) == forced
    before = (model.beam_size, model.nbest)
    found = MeasuredCaptions(packed, part, True).measured(model)
    assert (model.beam_size, model.nbest) == before and before[0] > 1
    assert forced < set(found) and {"bleu_4", "chrf", "rouge_l"} < set(found)
    greedy = load_greedy(model)
    assert found["chrf"] == caption_metrics(greedy.captions(part.paths), part.captions)["chrf"]


def load_greedy(model: Captioner) -> Captioner:
    return Captioner(model.decoder, model.extractor, model.subwords, beam_size=1, max_length=8)


def test_a_search_that_fails_leaves_the_settings(
    model: Captioner, data: CaptioningData, monkeypatch: pytest.MonkeyPatch
):
    part = data.parts["validation"]
    packed = model.batching.pack(part.paths, part.captions)
    monkeypatch.setattr(Captioner, "captions", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        MeasuredCaptions(packed, part, True).measured(model)
    assert (model.beam_size, model.nbest) == (2, 1)


def test_a_report(model: Captioner):
    black = np.zeros((32, 32, 3), "uint8")
    packed = {"train": model.pack([black] * 2, ["a red star", ["it"] * 3])}
    lengths = packed["train"].captions.lengths
    examples = CaptionExamples(["a.png", "b.png"], [["a"], ["b"]], [2, 3], "folder", "a.csv")
    report = captioning_report(model, packed, {"train": examples}, 7)
    assert report["examples"]["train"] == {
        **{"count": 2, "source": "a.csv", "captions": 4},
        **{"tokens": lengths.sum(), "longest": lengths.max()},
        "truncated_share": 0.0,
    }
    assert (report["subwords"], report["map"], report["steps"]) == (60, [4, 4, 6], 7)
    count = sum(int(np.prod(v.shape)) for v in model.decoder.trainable_variables)
    assert report["parameters"] == count
    text = captioning_lines(report)
    assert f"train: 2 images, 4 captions, {lengths.sum()} tokens, the longest has" in text
    assert "subwords: 60; map: 4 x 4, 6 channels" in text and "steps: 7; parameters" in text
