"""Whole runs of a tiny translator: what they hold, and that a stop changes nothing."""

import json
import os
import shutil
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu
from safetensors.numpy import load_file

from kbert.tasks.load import load
from kbert.text.subword import Subword
from kbert.training.callbacks.epoch_record import EpochRecord
from kbert.training.callbacks.state_saver import Saving
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.recipes import recipe as recipe_module
from kbert.training.recipes import translation as translation_run
from kbert.training.recipes.translation import TranslationTraining
from kbert.training.run import train
from kbert.training.runs.run_directory import load_run
from tests.pinned import check_run
from tests.replica_process import result_of
from tests.training.tiny_translations import ARCHITECTURES, PARTS, SOURCES, TARGETS

WEIGHTS = ("model", "model.safetensors")


def test_what_a_run_holds(finished_translation, tiny_pairs):
    assert sorted(os.listdir(finished_translation)) == [
        "config.yaml",
        "environment.json",
        "log.txt",
        "metrics.json",
        "model",
        "report.json",
        "subwords",
    ]
    files = ("config.yaml", "metrics.json", "report.json", "log.txt")
    check_run("translation", finished_translation, (*files, "model/kbert_translation.json"))
    joint = Subword.from_file(finished_translation / "subwords" / "joint.model")
    assert len(joint) == 46
    run = load_run(finished_translation)
    assert run.config.epochs == 3 and run.config.task == "translation"
    assert load(run.model_directory).source_subwords.model == joint.model


def test_the_numbers_of_a_run(finished_translation):
    run = load_run(finished_translation)
    epochs = run.metrics["epochs"]
    assert [epoch["epoch"] for epoch in epochs] == [1, 2, 3]
    assert set(epochs[0]["training"]) == {"loss", "accuracy", "perplexity"}
    best = min(epochs, key=lambda epoch: epoch["validation"]["loss"])
    assert run.metrics["kept_epoch"] == best["epoch"] and run.metrics["monitor"] == "loss"
    final = run.metrics["final"]
    for name in ("loss", "perplexity", "accuracy"):
        assert final["validation"][name] == pytest.approx(best["validation"][name], rel=1e-5)
    # What is measured is what the written model says, by sacreBLEU itself.
    rows = PARTS["test"]
    translations = load(run.model_directory).translations(SOURCES[rows])
    expected = sacrebleu.corpus_bleu(translations, [TARGETS[rows]]).score
    assert final["test"]["bleu"] == pytest.approx(expected)
    assert "tok:13a" in final["test"]["bleu_signature"] and final["test"]["sentences"] == 8
    assert "tokenized_lowercase_bleu" in final["test"]


def test_the_report_tells_what_was_read(finished_translation):
    report = json.loads((finished_translation / "report.json").read_text())
    train_part = report["examples"]["train"]
    assert (train_part["count"], train_part["read"], train_part["left_out"]) == (56, 56, {})
    assert report["steps"] == 3 * report["steps_per_epoch"]
    assert report["subwords"] == {"source": 46, "target": 46} and report["warm_start"] is None
    text = (finished_translation / "log.txt").read_text()
    for words in ("56 of 56 sentence pairs kept", "epoch 3/3: loss ", "accuracy", "finished in"):
        assert words in text


def stop_after(monkeypatch, batches):
    """Ends the training after some batches, as Ctrl-C would, with a state of each."""
    seen = []

    def count(self, batch, logs=None):
        seen.append(batch)
        if len(seen) > batches:
            raise KeyboardInterrupt

    monkeypatch.setattr(recipe_module, "Saving", partial(Saving, seconds=0))
    monkeypatch.setattr(EpochRecord, "on_train_batch_begin", count)


def checksum(model, text, *_):
    """Stands for the scores of a translator: a number that tells its weights from others."""
    return {"weights": float(sum(np.abs(weight).sum() for weight in model.weights))}, []


@pytest.mark.slow
def test_a_run_that_was_stopped_ends_with_the_same_weights(
    tiny_pairs, tmp_path, monkeypatch, eagerly, bar_steps
):
    values = {"average": 2, "steps_per_execution": 2}
    stops_and_ends_with_the_same_weights(values, tiny_pairs, tmp_path, monkeypatch)
    # A call of two batches was done before the stop; the bar of the resumed run counts it.
    batches = json.loads((tmp_path / "whole" / "report.json").read_text())["batches_per_epoch"]
    shown = [("epoch 2/2", min(done, batches), batches) for done in range(4, batches + 2, 2)]
    assert bar_steps[-len(shown) :] == shown


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"average": 2},
        {"average": 2, "steps_per_execution": 2},
        *ARCHITECTURES.values(),
        {"precision": "mixed_bfloat16", **ARCHITECTURES["bahdanau"]},
    ],
)
def test_a_run_of_traced_steps_that_was_stopped_does_too(
    values, tiny_pairs, tmp_path, monkeypatch
):
    stops_and_ends_with_the_same_weights(values, tiny_pairs, tmp_path, monkeypatch)


def stops_and_ends_with_the_same_weights(values, tiny_pairs, tmp_path, monkeypatch):
    """In the second epoch, within an update of three batches, which goes on in the next call."""
    values = {"epochs": 2, "batch_tokens": 192, "dropout": 0.3, **values}
    values["accumulation_steps"] = 3
    monkeypatch.setattr(translation_run.evaluation, "measure_translator", checksum)
    whole = load_run(train(tiny_pairs.config(tmp_path / "whole", **values)))
    batches = json.loads((whole.directory / "report.json").read_text())["batches_per_epoch"]
    of_a_call = values.get("steps_per_execution", 1)
    config = tiny_pairs.config(tmp_path / "run", **values)
    with monkeypatch.context() as patched:
        stop_after(patched, -(-batches // of_a_call) + 1)  # calls
        with pytest.raises(KeyboardInterrupt):
            train(config)
    assert sorted(os.listdir(tmp_path)) == ["run.incomplete", "whole"]
    with pytest.raises(FileNotFoundError, match="stopped before its end"):
        load_run(tmp_path / "run")
    with pytest.raises(FileExistsError, match="Set resume to go on with it"):
        train(config.with_values(resume=False))
    with monkeypatch.context() as patched:  # a second stop, when all but the numbers is there
        patched.setattr(translation_run.evaluation, "measure_translator", fail)
        with pytest.raises(RuntimeError, match="power"):
            train(config)
    run = load_run(train(config))
    one, other = (load_file(x.directory.joinpath(*WEIGHTS)) for x in (whole, run))
    assert all((one[name] == other[name]).all() for name in one)
    assert run.metrics["final"] == whole.metrics["final"]
    names = ("training", "validation")
    for first, second in zip(whole.metrics["epochs"], run.metrics["epochs"], strict=True):
        for name in names:  # sums, whose last bit depends on the order
            assert first[name] == pytest.approx(second[name], rel=1e-6)
    assert run.metrics["kept_epoch"] == whole.metrics["kept_epoch"]
    assert run.metrics["averaged_epochs"] == ([1, 2] if "average" in values else None)
    assert sorted(os.listdir(run.directory)) == sorted(os.listdir(whole.directory))
    told = f"goes on after step {batches + of_a_call}"
    assert told in (run.directory / "log.txt").read_text()


def fail(*args, **kwargs):
    raise RuntimeError("power")


@pytest.mark.slow
def test_batches_of_one_shape_are_shared_by_replicas_in_calls_of_several(repository, tmp_path):
    """See the program: a pretraining too, of two steps, two, and one."""
    found = result_of("tests.training.fixed_shapes_run", repository, str(tmp_path))
    assert found["report"]["batches_per_epoch"] == 28
    assert np.isfinite(found["epochs"][0]["training"]["loss"])
    assert found["refused"] == (
        "`batch_tokens` must be at least 48, a pair of 24 tokens for each of 2 cores. Received: "
        "batch_tokens=47"
    )
    assert [one["step"] for one in found["intervals"]] == [4, 5]
    assert all(np.isfinite(one["training"]["loss"]) for one in found["intervals"])


@pytest.mark.slow
def test_two_replicas_learn_as_one_device_does(repository, tmp_path):
    found = result_of("tests.training.replicated_translators", repository, str(tmp_path))
    assert sorted(found) == sorted(ARCHITECTURES)
    for one, two in found.values():
        assert one["learned"] == pytest.approx(two["learned"], rel=1e-4)
        assert one["learned"] < 0.95 * one["first"] and one["batches"] == two["batches"] > 2


def test_only_the_same_run_goes_on(tiny_pairs, tmp_path, monkeypatch):
    config = tiny_pairs.config(tmp_path / "run", epochs=1)
    with monkeypatch.context() as patched:
        patched.setattr(translation_run.TranslationTraining, "fit", fail)
        with pytest.raises(RuntimeError, match="power"):
            train(config)
    with pytest.raises(ValueError, match=r"Received: epochs=2 \(it had 1\)"):
        train(config.with_values(epochs=2))
    other = tiny_pairs.folder / "validation.tsv"
    fewer = tmp_path / "validation.tsv"
    fewer.write_text("".join(other.read_text().splitlines(keepends=True)[:-1]))
    monkeypatch.setattr(
        translation_run.examples,
        "read_translation_data",
        lambda _: translation_run_data(tiny_pairs.config(tmp_path, validation=str(fewer))),
    )
    with pytest.raises(ValueError, match="others to be measured on; the files have changed since"):
        train(config)


def test_other_weights_of_a_warm_start_or_of_bert_are_refused(
    finished_translation, tiny, tiny_pairs, tmp_path, monkeypatch
):
    warm, bert = tmp_path / "warm", tmp_path / "bert"
    shutil.copytree(finished_translation, warm)
    shutil.copytree(tiny.encoder, bert)
    config = TranslationConfig.from_dict(
        {
            "train": str(tiny_pairs.folder / "train.tsv"),
            "output": str(tmp_path / "run"),
            "warm_start": str(warm),
            "bert": str(bert),
        }
    )
    with monkeypatch.context() as patched:
        patched.setattr(translation_run.TranslationTraining, "fit", fail)
        with pytest.raises(RuntimeError, match="power"):
            train(config)
    model = load(warm / "model")
    model.weights[0].assign(-model.weights[0])
    model.save_pretrained(warm / "model", overwrite=True)
    with pytest.raises(ValueError, match="`warm_start` must have the weights that the run in "):
        train(config)
    (file,) = bert.glob("*.safetensors")
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ValueError, match="`bert` must have the weights that the run in "):
        train(config)


translation_run_data = translation_run.examples.read_translation_data


@pytest.mark.slow
def test_a_fused_one_begins_with_the_other(
    finished_translation, tiny, tiny_pairs, tmp_path, monkeypatch, eagerly
):
    common = {
        "train": str(tiny_pairs.folder / "train.tsv"),
        "validation": str(tiny_pairs.folder / "validation.tsv"),
        "warm_start": str(finished_translation),
        "bert": str(tiny.encoder),
        "epochs": 1,
        "batch_tokens": 2000,
        "learning_rate": 1e-3,
        "warmup_steps": 2,
    }
    config = tiny_pairs.config(tmp_path).from_dict  # the class
    features = {"features": str(tmp_path / "features"), "monitor": "bleu", "average": 1}
    made = {"task": "translation", **common}
    monkeypatch.setattr(translation_run.evaluation, "measure_translator", checksum)
    echo = SimpleNamespace(translations=lambda sources: sources)  # stands for the search
    monkeypatch.setattr(translation_run.evaluation, "searcher_of", lambda model, beam_size: echo)
    with_files = load_run(train(config({**made, **features, "output": str(tmp_path / "a")})))
    without = load_run(train(config({**made, "output": str(tmp_path / "b")})))
    report = json.loads((with_files.directory / "report.json").read_text())["warm_start"]
    vanilla = load_file(finished_translation.joinpath(*WEIGHTS))
    assert report["loaded"] == len(vanilla) and report["mismatched"] == []
    assert report["new"] and all("/bert_attention/" in name for name in report["new"])
    # States in float16 have a relative error of 2^-11.
    one, other = (run.metrics["epochs"][0]["validation"]["loss"] for run in (with_files, without))
    assert one == pytest.approx(other, rel=5e-3)
    assert "bleu" in with_files.metrics["epochs"][0]["validation"]
    log = (with_files.directory / "log.txt").read_text()
    assert "weights taken over" in log and "features of 56 texts" in log
    assert load(with_files.model_directory).bert_tokenizer is not None


@pytest.mark.parametrize(
    "values, message",
    [
        ({"vocabulary_size": 4000}, "`vocabulary_size` must be at most"),
        ({"accumulation_steps": 1000}, "`accumulation_steps` must be at most the number of batch"),
        ({"max_length": 1}, r"there must be sentence pairs. Received: none. .*: 0 of 56 sentence"),
        ({"target_language": "xx"}, "`target_language` must be one of .* Received: target_lang"),
        ({"hidden_dim": 15}, "`num_heads`|`hidden_dim`"),
    ],
)
def test_what_does_not_fit_writes_nothing(values, message, tiny_pairs, tmp_path):
    with pytest.raises(ValueError, match=message):
        recipe_module.run_recipe(TranslationTraining(tiny_pairs.config(tmp_path / "run", **values)))
    assert os.listdir(tmp_path) == []


def test_lines_that_teach_nothing_are_left_out_and_told(
    tiny_pairs, tmp_path, monkeypatch, capsys
):
    """An empty line on a side, a line of 100,000 characters, and one-sided lengths."""
    sources = [*SOURCES[:20], "", "red dog", "red " * 25_000, "red dog", "red"]
    targets = [*TARGETS[:20], "rot hund", " ", "rot hund", "rot " * 25_000, "rot " * 5]
    (tmp_path / "a.en").write_text("".join(f"{line}\n" for line in sources))
    (tmp_path / "a.de").write_text("".join(f"{line}\n" for line in targets))
    files = {"train_source": str(tmp_path / "a.en"), "train_target": str(tmp_path / "a.de")}
    values = {"train": None, "epochs": 1, "max_ratio": 4.0, "vocabulary_size": 40, **files}
    values["warmup_steps"] = 500
    monkeypatch.setattr(translation_run.TranslationTraining, "fit", fail)  # all is told before
    with pytest.raises(RuntimeError, match="power"):
        train(tiny_pairs.config(tmp_path / "run", **values))
    folder = tmp_path / "run.incomplete"
    left_out = json.loads((folder / "report.json").read_text())["examples"]["train"]
    assert left_out["count"] == 20 and left_out["left_out"] == {
        "empty_source": {"count": 1, "lines": [21]},
        "empty_target": {"count": 1, "lines": [22]},
        "too_long": {"count": 2, "lines": [23, 24]},
        "ratio": {"count": 1, "lines": [25]},
    }
    told = capsys.readouterr().err
    assert "left out: 2 too long (lines 23, 24)" in told
    warning = "the run has 2 steps, and its rate rises until step 500: it will learn little."
    assert f"Warning: {warning}" in told and "`--warmup-steps 1` with a `--learning-rate`" in told
    (kept,) = json.loads((folder / "report.json").read_text())["warnings"]
    assert kept.startswith(warning)
    assert "left out: 2 too long (lines 23, 24)" in (folder / "log.txt").read_text()
