import numpy as np
import pytest

from kbert.tasks.load import load
from kbert.training.runs.run_directory import load_run
from kbert.training.translation.evaluation import translation_lines, translation_report
from kbert.training.translation.examples import read_translation_data
from kbert.training.translation.inputs import prepare_pairs, train_buckets
from kbert.training.translation.model import build_translator, load_warm_start


def test_batches_of_one_shape_are_counted_as_they_are_trained_on(
    finished_translation, tiny_pairs, tmp_path
):
    config = tiny_pairs.config(tmp_path / "run", strategy="tpu", cooldown_epochs=1)
    data = read_translation_data(config)
    subwords = load(load_run(finished_translation).model_directory).source_subwords
    built = build_translator(config, (subwords, subwords), None)
    parts = {"train": prepare_pairs(built.model, data.train)}
    report = translation_report(config, data, built, parts)
    # 128 tokens are 5 rows of 24; 56 pairs are 12 batches.
    dataset = parts["train"].dataset(
        built.model, batch_tokens=128, buckets=train_buckets(config, 24)
    )
    batches = list(dataset)
    assert report["steps_per_epoch"] == report["batches_per_epoch"] == len(batches) == 12
    cells = sum(2 * np.size(targets) for _, targets, *_ in batches)
    assert report["padding_share"] == pytest.approx(1 - parts["train"].tokens / cells)


def test_a_report_and_its_words(finished_translation, tiny_pairs, tiny, tmp_path):
    train = tmp_path / "train.tsv"
    rows = (tiny_pairs.folder / "train.tsv").read_text().splitlines()[:9]
    train.write_text("\n".join([*rows, "red\t"]) + "\n")
    config = tiny_pairs.config(tmp_path).from_dict(
        {
            "train": str(train),
            "output": str(tmp_path),
            "warm_start": str(finished_translation),
            "bert": str(tiny.encoder),
            "batch_tokens": 40,
            "accumulation_steps": 2,
            "epochs": 3,
        }
    )
    data = read_translation_data(config)
    warm = load_warm_start(config)
    built = build_translator(config, (warm.source_subwords, warm.target_subwords), warm)
    parts = {"train": prepare_pairs(built.model, data.train)}
    report = translation_report(config, data, built, parts)
    lengths = parts["train"].packed.sources.lengths, parts["train"].packed.targets.lengths
    about = report["examples"]["train"]
    assert (about["count"], about["read"]) == (8, 9) and about["longest"] == max(map(max, lengths))
    assert about["tokens"] == sum(map(sum, lengths)) and data.hashes.items() <= report.items()
    # Batches are counted, and an update is two of them.
    batches = len(list(parts["train"].dataset(built.model, batch_tokens=40)))
    assert report["steps_per_epoch"] == batches // 2 and report["steps"] == 3 * (batches // 2)
    text = translation_lines(report, parts)
    assert f"train: 8 pairs, {about['tokens']} tokens" in text
    assert "8 of 9 sentence pairs kept" in text and "1 without a target sentence (line 10)" in text
    assert "warm start: 33 weights taken over, 12 new (decoder_block_0/bert_attention/" in text
    assert "subwords: 46 of the source, 46 of the target" in text
