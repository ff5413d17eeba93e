import numpy as np
import pytest

from kbert.training.pretraining.model import (
    build_pretrained,
    config_of_model,
    measure_pretrained,
    run_tokenizer,
)
from kbert.training.pretraining.sources import read_text, validation_batches
from tests.numpy_reference import softmax
from tests.training.tiny_corpus import TinyCorpus


def test_numbers(tmp_path, eagerly):
    tiny = TinyCorpus(tmp_path)
    config = tiny.config(tmp_path / "run")
    model = build_pretrained(config, run_tokenizer(config, None))
    folder = model.save_pretrained(tmp_path / "model")
    corpus = read_text(config).validation
    batches = list(validation_batches(config, corpus, model.tokenizer, None).as_numpy_iterator())
    assert len(batches) > config.validation_steps
    for steps in (None, 3):
        found = measure_pretrained(folder, corpus, config, steps)
        sums = dict.fromkeys(("loss", "right", "count", "pair_loss", "pair_right", "pairs"), 0.0)
        for inputs, targets in batches[:steps]:
            outputs = model(inputs)
            ids = targets["masked_tokens"]
            rows = softmax(np.asarray(outputs["masked_tokens"], "float64"))[ids >= 0]
            ids = ids[ids >= 0]
            sums["loss"] -= np.log(rows[np.arange(len(ids)), ids]).sum()
            sums["right"] += (rows.argmax(-1) == ids).sum()
            sums["count"] += len(ids)
            pairs = softmax(np.asarray(outputs["next_sentence"], "float64"))
            follows = targets["next_sentence"]
            sums["pair_loss"] -= np.log(pairs[np.arange(len(follows)), follows]).sum()
            sums["pair_right"] += (pairs.argmax(-1) == follows).sum()
            sums["pairs"] += len(follows)
        assert found["masked_loss"] == pytest.approx(sums["loss"] / sums["count"], rel=1e-5)
        assert found["masked_accuracy"] == pytest.approx(sums["right"] / sums["count"])
        pair_loss = sums["pair_loss"] / sums["pairs"]
        assert found["next_sentence_loss"] == pytest.approx(pair_loss, rel=1e-5)
        accuracy = sums["pair_right"] / sums["pairs"]
        assert found["next_sentence_accuracy"] == pytest.approx(accuracy)
    made = config_of_model(folder)
    assert (made.objective, made.max_sequence_length) == ("mlm_nsp", 20)
