"""Exports loaded back: rows, batches, and answers for people."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from kbert.serving.export.export import export
from kbert.serving.loading.exported import Exported, found_version, load_export
from kbert.tasks.classification.model import Classifier
from kbert.tasks.multiple_choice.model import MultipleChoice
from kbert.tasks.pretraining.model import MaskedLanguageModel
from tests.small_pipelines import computed


def test_it_is_found_by_its_model_or_its_version(exported_path: Path):
    for path in (exported_path, exported_path.parent, str(exported_path.parent)):
        found = load_export(path)
        assert found.path == exported_path
        assert found.labels == ["no", "yes", "ja"]
    with pytest.raises(FileNotFoundError, match=r"a folder of the models \['small'\]: name one"):
        load_export(exported_path.parents[1])


def test_it_is_read_from_a_bucket(exported: Exported):
    """TensorFlow's file system in memory stands for it."""
    for file in (path for path in exported.path.rglob("*") if path.is_file()):
        name = f"ram://bucket/topics/12/{file.relative_to(exported.path)}"
        tf.io.gfile.makedirs(name.rpartition("/")[0])
        tf.io.gfile.copy(str(file), name)
    tf.io.gfile.makedirs("ram://bucket/topics/13")  # still being copied: it has no graph yet
    found = load_export("ram://bucket/topics/")
    assert found.labels == exported.labels and found.path.name == "12"
    one, same = (of.answers(["a good film"])[0] for of in (found, exported))
    assert one["label"] == same["label"]
    assert found_version("ram://bucket/topics/12") == "ram://bucket/topics/12"
    with pytest.raises(FileNotFoundError, match="`path` must be an export.*'ram://bucket/none'"):
        load_export("ram://bucket/none")


@pytest.mark.parametrize("rows", [0, 1, 2, 300])
def test_any_number_of_rows(exported: Exported, texts: list[Any], rows: int):
    batch = [texts[i % len(texts)] for i in range(rows)]
    found = exported.run({"text": batch})
    assert found["label"].shape == found["score"].shape == found["truncated"].shape == (rows,)
    assert found["scores"].shape == found["labels"].shape == (rows, 3)
    assert np.isfinite(found["scores"]).all()
    np.testing.assert_allclose(found["scores"].sum(1), 1.0, atol=1e-5)  # probabilities
    np.testing.assert_array_equal(found["scores"].max(1), found["score"])


@pytest.mark.parametrize("rows, length", [(0, 5), (1, 1), (40, 24)])
def test_any_number_of_rows_of_tokens(exported: Exported, rows: int, length: int):
    ids = np.full((rows, length), 5, np.int32)
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "lengths": np.full(rows, length, np.int32)}
    found = exported.run(inputs, "tokens")
    assert set(found) == {"label", "score", "scores", "labels"}
    assert found["scores"].shape == (rows, 3)
    assert np.isfinite(found["scores"]).all()


def test_the_two_signatures_agree(exported: Exported, classifier: Classifier, texts: list[Any]):
    packed = classifier.preprocess(np.array(texts, dtype=object))
    found = exported.run(
        {
            "token_ids": packed.token_ids.numpy(),
            "segment_ids": packed.segment_ids.numpy(),
            "lengths": packed.lengths.numpy(),
        },
        "tokens",
    )
    expected = exported.run({"text": texts})
    np.testing.assert_allclose(found["scores"], expected["scores"], atol=1e-5)


def test_what_lies_beyond_the_length_of_a_row_is_not_seen(exported: Exported):
    # TF Serving pads a batch of requests with copies of a row's cells.
    ids = np.array([[2, 5, 6, 3]], np.int32)
    padded = np.concatenate([ids, np.full((1, 4), 7, np.int32)], 1)
    length = np.array([4], np.int32)
    one, other = (
        exported.run({"token_ids": x, "segment_ids": 0 * x, "lengths": length}, "tokens")
        for x in (ids, padded)
    )
    np.testing.assert_allclose(one["scores"], other["scores"], atol=1e-5)


def test_a_row_is_answered_alike_in_any_batch(exported: Exported, texts: list[Any]):
    together = exported.run({"text": texts})
    backwards = exported.run({"text": texts[::-1]})
    np.testing.assert_allclose(backwards["scores"][::-1], together["scores"], atol=1e-5)
    for index, text in enumerate(texts):
        alone = exported.run({"text": [text]})
        np.testing.assert_allclose(alone["scores"][0], together["scores"][index], atol=1e-5)
        assert alone["label"][0] == together["label"][index]
        assert alone["truncated"][0] == together["truncated"][index]


@pytest.mark.parametrize("batch_size", [1, 5, 100])
def test_predict_keeps_the_order(exported: Exported, texts: list[Any], batch_size: int):
    found = exported.predict(texts, batch_size=batch_size)
    expected = exported.run({"text": texts})
    assert found["label"].tolist() == expected["label"].tolist()
    np.testing.assert_allclose(found["scores"], expected["scores"], atol=1e-5)
    assert exported.predict([])["scores"].shape == (0, 3)


def test_answers_are_plain_values(exported: Exported, texts: list[Any]):
    answers = exported.answers(texts)
    expected = exported.run({"text": texts})
    assert len(answers) == len(texts)
    for row, answer in enumerate(answers):
        assert list(answer) == ["label", "score", "scores", "truncated"]
        assert answer["label"] == max(answer["scores"], key=answer["scores"].get)
        assert list(answer["scores"]) == ["no", "yes", "ja"]
        assert type(answer["truncated"]) is bool
        assert answer["score"] == pytest.approx(float(expected["score"][row]), abs=1e-6)


def test_pairs_are_read_in_the_order_of_the_arguments(pair_classifier: Classifier, tmp_path: Path):
    found = load_export(export(pair_classifier, tmp_path, max_batch_size=1))
    assert found.input_names() == ["text_a", "text_b"]
    first, second = ["a film", ""], ["good", "film " * 40]
    answers = found.predict(first, second)
    expected = computed(pair_classifier, (first, second))
    np.testing.assert_allclose(answers["scores"], expected, atol=1e-5)
    assert answers["truncated"].tolist() == [False, True]
    swapped = found.predict(second, first)
    assert np.abs(swapped["scores"] - answers["scores"]).max() > 1e-3
    with pytest.raises(ValueError, match=r"must be 2 list\(s\) of the same length"):
        found.predict(first)
    with pytest.raises(ValueError, match=r"for \['text_a', 'text_b'\]. Received: 2 of \[2, 1\]"):
        found.predict(first, ["good"])


def test_choices_are_lists_a_row(classifier: Classifier, tmp_path: Path):
    model = MultipleChoice(classifier.encoder, classifier.tokenizer, 24)
    found = load_export(export(model, tmp_path, max_batch_size=1))
    contexts, choices = ["a film", "good"], [["a", "good", ""], ["!", "??", "good good"]]
    answers = found.predict(contexts, choices)
    expected = computed(model, (contexts, choices))
    np.testing.assert_allclose(answers["scores"], expected, atol=1e-5)
    assert answers["choice"].tolist() == expected.argmax(1).tolist()
    assert list(found.answers(contexts, choices)[0]) == ["choice", "score", "scores", "truncated"]
    assert found.predict([], [])["choice"].shape == (0,)


def test_words_for_masks_whatever_the_batches(masked: Exported, masked_model: MaskedLanguageModel):
    texts = ["[MASK]", "none", "a [MASK] good [MASK] film [MASK]", "", "[MASK] " * 9]
    # At once, padded to the most of all.
    expected = masked_model.fill(np.array(texts, dtype=object))
    for batch_size in (1, 32):
        found = masked.predict(texts, batch_size=batch_size)
        assert set(found) == set(expected)
        for name, values in expected.items():
            if name == "score":
                np.testing.assert_allclose(found[name], values, atol=1e-5)
            else:
                assert found[name].tolist() == values.numpy().tolist(), (batch_size, name)
    answers = masked.answers(texts)
    assert [one["filled"].encode() for one in answers] == expected["filled"].numpy().tolist()
    assert [len(one["masks"]) for one in answers] == [1, 0, 3, 0, 9]
    assert {len(mask["words"]) for one in answers for mask in one["masks"]} == {5}
    word = answers[2]["masks"][1]["words"][0]
    assert word["word"].encode() == expected["word"].numpy()[2, 1, 0]


def test_tables_have_the_columns_of_the_inputs(exported: Exported, texts: list[Any]):
    expected = exported.answers(texts[:2])
    frame = pd.DataFrame({"id": [1, 2], "text": texts[:2]})
    for table in (frame, frame["text"], {"text": texts[:2]}):
        assert exported.answers(table) == expected
    with pytest.raises(ValueError, match=r"must have the columns \"text\"\. Received: a DataFrame"):
        exported.answers(frame[["id"]])
    with pytest.raises(ValueError, match=r"dict of the columns \['text'\]\. Received: \['texts'\]"):
        exported.predict({"texts": texts})


def test_it_says_what_it_is(exported: Exported):
    assert repr(exported) == "<Exported Classifier 'small' version 1>"


def test_wrong_calls_are_told(exported: Exported):
    with pytest.raises(ValueError, match=r"one of \['serving_default', 'tokens'\].*='classify'"):
        exported.run({"text": ["a"]}, "classify")
    with pytest.raises(ValueError, match=r"must be \['text'\]. Received: inputs=\['texts'\]"):
        exported.run({"texts": ["a"]})
    with pytest.raises(ValueError, match=r"`inputs\['text'\]` must have 1 dimension"):
        exported.run({"text": "a"})
    with pytest.raises(ValueError, match=r"`inputs\['text'\]` must hold str or bytes. .*: 1$"):
        exported.run({"text": ["a", 1]})
    with pytest.raises(ValueError, match="`texts` must be lists .*the single text 'one text'"):
        exported.predict("one text")
    with pytest.raises(ValueError, match=r"must be 1 list.*Received: 2 of \[1, 1\] texts"):
        exported.predict(["a"], ["b"])
    for wrong in (None, 1):
        with pytest.raises(TypeError, match=rf"`text\[1\]` must be str or bytes.*: {wrong}"):
            exported.answers(["a", wrong])
    with pytest.raises(ValueError, match="`texts` must be lists .*Received: None"):
        exported.answers(None)
    for wrong in (0, 1.5):
        for call in (exported.predict, exported.answers):
            with pytest.raises(ValueError, match=f"`batch_size` must be .*: batch_size={wrong}"):
                call(["a"], batch_size=wrong)
