"""Whole runs of a tiny captioner: what they hold, and that a stop changes nothing."""

import json
import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from kbert.metrics.bleu import caption_metrics
from kbert.tasks.captioning import image_features
from kbert.tasks.load import load
from kbert.text.subword import Subword
from kbert.training.callbacks.epoch_record import EpochRecord
from kbert.training.callbacks.state_saver import Saving
from kbert.training.captioning.examples import read_captioning_data
from kbert.training.recipes import captioning as captioning_run
from kbert.training.recipes import recipe as recipe_module
from kbert.training.run import train
from kbert.training.runs.run_directory import load_run
from tests.small_captioner import small_network
from tests.training.tiny_captions import TinyCaptions

ARRAYS = ("model.safetensors", "extractor.safetensors")


def test_what_a_run_holds(finished_captioning: Path):
    assert sorted(os.listdir(finished_captioning)) == [
        *("config.yaml", "environment.json", "log.txt", "metrics.json", "model", "report.json"),
        "subwords.model",
    ]
    run = load_run(finished_captioning)
    assert run.config.task == "captioning" and run.config.epochs == 2
    subwords = Subword.from_file(finished_captioning / "subwords.model")
    assert load(run.model_directory).subwords.model == subwords.model
    report = json.loads((finished_captioning / "report.json").read_text())
    assert report["map"] == [4, 4, 6] and report["steps"] == 4
    assert [report["examples"][part]["captions"] for part in ("train", "validation")] == [24, 8]
    text = (finished_captioning / "log.txt").read_text()
    for words in ("train: 12 images, 24 captions", "epoch 2/2: loss ", "finished in"):
        assert words in text


def test_the_numbers_of_a_run(finished_captioning: Path):
    run = load_run(finished_captioning)
    epochs = run.metrics["epochs"]
    assert [epoch["epoch"] for epoch in epochs] == [1, 2]
    assert epochs[1]["training"]["loss"] < epochs[0]["training"]["loss"]
    best = min(epochs, key=lambda epoch: epoch["validation"]["loss"])
    assert run.metrics["kept_epoch"] == best["epoch"]
    final = run.metrics["final"]
    for name in ("loss", "perplexity", "accuracy"):
        assert final["validation"][name] == pytest.approx(best["validation"][name], rel=1e-4)
    # What is measured is what the written model says of the images of that part.
    part = read_captioning_data(run.config).parts["test"]
    captions = load(run.model_directory).captions(part.paths)
    known = caption_metrics(captions, part.captions)
    assert {name: final["test"][name] for name in known} == known
    assert final["test"]["images"] == 4


def stop_after(monkeypatch: pytest.MonkeyPatch, batches: int) -> None:
    """Ends the training after some batches, as Ctrl-C would, with a state of each."""
    seen: list[int] = []

    def count(self: Any, batch: int, logs: Any = None) -> None:
        seen.append(batch)
        if len(seen) > batches:
            raise KeyboardInterrupt

    monkeypatch.setattr(recipe_module, "Saving", partial(Saving, seconds=0))
    monkeypatch.setattr(EpochRecord, "on_train_batch_begin", count)


def no_measures(*_: Any) -> tuple[dict[str, Any], list[str]]:
    """Stands for a search, which takes longer than the training."""
    return {"images": 4}, []


def stops_and_ends_with_the_same_weights(
    tiny: TinyCaptions, folder: Path, monkeypatch: pytest.MonkeyPatch, **values: Any
) -> None:
    """Hard attention draws its places, and dropout is on: the seeds must go on as they would."""
    values = {"attention": "hard", "dropout": 0.3, **values}
    monkeypatch.setattr(captioning_run.evaluation, "measure_captioner", no_measures)
    whole = load_run(train(tiny.config(folder / "whole", **values)))
    config = tiny.config(folder / "run", **values)
    with monkeypatch.context() as patched:
        stop_after(patched, 4)  # of six, in the second epoch
        with pytest.raises(KeyboardInterrupt):
            train(config)
    assert sorted(os.listdir(folder)) == ["run.incomplete", "whole"]
    with pytest.raises(ValueError, match=r"Received: batch_size=7 \(it had 8\)"):
        train(config.with_values(batch_size=7))
    run = load_run(train(config))
    for name in ARRAYS:
        one, other = (load_file(x.model_directory / name) for x in (whole, run))
        assert sorted(one) == sorted(other) and one
        assert all((one[key] == other[key]).all() for key in one)
    for first, second in zip(whole.metrics["epochs"], run.metrics["epochs"], strict=True):
        assert first["training"] == second["training"]
        assert first["validation"] == second["validation"]
    assert "goes on after step 4" in (run.directory / "log.txt").read_text()


@pytest.mark.slow
def test_a_run_that_was_stopped_ends_with_the_same_weights(
    tiny_captions: TinyCaptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eagerly: None
):
    stops_and_ends_with_the_same_weights(tiny_captions, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("values", [{}, {"train_network": True}])
def test_a_run_of_traced_steps_that_was_stopped_does_too(
    values: dict[str, Any],
    tiny_captions: TinyCaptions,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    stops_and_ends_with_the_same_weights(tiny_captions, tmp_path, monkeypatch, **values)


def test_a_replaced_network_is_refused(
    tiny_captions: TinyCaptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    network = tmp_path / "cnn.keras"
    small_network().save(network)
    config = tiny_captions.config(tmp_path / "run", network=str(network))
    with monkeypatch.context() as patched:
        stop_after(patched, 0)
        with pytest.raises(KeyboardInterrupt):
            train(config)
    small_network().save(network)
    with pytest.raises(ValueError, match="`network` must have the weights that the run in .* beg"):
        train(config)


@pytest.mark.slow
def test_features_in_a_folder_are_those_of_the_next_run(
    tiny_captions: TinyCaptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eagerly: None
):
    """The network is asked once for each image that is trained on or measured."""
    seen: list[int] = []
    computed = image_features._computed

    def counted(model: Any, files: Any) -> Any:
        seen.append(len(files))
        return computed(model, files)

    monkeypatch.setattr(image_features, "_computed", counted)
    features = {"features": str(tmp_path / "features"), "epochs": 1}
    first = train(tiny_captions.config(tmp_path / "a", **features))
    assert sorted(seen) == [4, 4, 12]  # validation is not seen a second time at the end
    second = train(tiny_captions.config(tmp_path / "b", **features))
    assert len(seen) == 3
    one, other = (load_file(x / "model" / ARRAYS[0]) for x in (first, second))
    assert all((one[key] == other[key]).all() for key in one)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"vocabulary_size": 4000}, "`vocabulary_size` must be at most"),
        ({"network_layer": "third"}, "`network` and `network_layer` must fit each other"),
        ({"split": "12,4,5"}, "`split` must be of 20 images at most, as many as there are"),
    ],
)
def test_what_does_not_fit_writes_nothing(
    values: dict[str, Any], message: str, tiny_captions: TinyCaptions, tmp_path: Path
):
    with pytest.raises(ValueError, match=message):
        train(tiny_captions.config(tmp_path / "run", **values))
    assert os.listdir(tmp_path) == []


def test_a_broken_image_is_named_and_nothing_is_written(
    tiny_captions: TinyCaptions, tmp_path: Path
):
    table, images = tmp_path / "a.csv", tmp_path / "images"
    images.mkdir()
    (images / "x.png").write_bytes(b"no image")
    table.write_text("image,caption\n" + "x.png,a red star on a blue ground and more\n" * 3)
    files = {"train": str(table), "images": str(images), "split": None, "vocabulary_size": 25}
    with pytest.raises(ValueError, match=r"image 0 \(.*x.png\)"):
        train(tiny_captions.config(tmp_path / "run", **files))
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "images"]


def test_a_broken_image_of_the_test_part_is_found_before_the_training(
    tiny_captions: TinyCaptions, tmp_path: Path
):
    shutil.copytree(tiny_captions.table.parent, folder := tmp_path / "shapes")
    sorted((folder / "images").iterdir())[-1].write_bytes(b"no image")
    files = {"train": str(folder / tiny_captions.table.name), "images": str(folder / "images")}
    with pytest.raises(ValueError, match=r"`images` must be images. Received 1 of 4 that are none"):
        train(tiny_captions.config(tmp_path / "run", **files))
    assert os.listdir(tmp_path) == ["shapes"]
