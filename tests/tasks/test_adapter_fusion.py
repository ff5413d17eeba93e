from types import SimpleNamespace

import numpy as np
import pytest

from kbert.data.classification.text_pairs import TextExamples
from kbert.models.feature_based import FeatureBasedEncoder
from kbert.tasks.adapter_fusion import (
    fused_encoder,
    weights_of_examples,
    weights_of_texts,
)
from kbert.tasks.registry import task_of
from tests.small_pipelines import (
    TOKENIZER,
    small_classifier,
    small_embedder,
    small_entity_recognizer,
    with_fusion,
)

FILES = {
    small_classifier: "text_a\tlabel\na good film\tyes\nbad\tno\nvery good\tyes\n",
    small_embedder: "text_a\ttext_b\na good film\tvery good\nbad\ta bad film\n",
    # More than 24 tokens: two windows.
    small_entity_recognizer: "\n".join(f"{c} O" for c in "abcdefghijklmnopqrstuvwxyz") + "\n",
}


def of_tokens(model, sequences):
    """The mean over all tokens of sequences of token ids, each computed without padding."""
    found = [
        np.stack(model.encoder.fusion_weights({"token_ids": ids[None], "segment_ids": kinds[None]}))
        for ids, kinds in sequences
    ]
    return np.concatenate(found, axis=2).mean(axis=(1, 2))


def ids_of(*texts):
    rows = [TOKENIZER.tokenize([text]).flat_values.numpy() for text in texts]
    ids = [TOKENIZER.vocabulary.cls_id]
    kinds = [0]
    for kind, row in enumerate(rows):
        ids += [*row, TOKENIZER.vocabulary.sep_id]
        kinds += [kind] * (len(row) + 1)
    return np.array(ids, "int32"), np.array(kinds, "int32")


@pytest.mark.parametrize("texts", [["a good film"], ["a film", "very bad"]])
def test_one_text_or_a_pair(texts):
    model = with_fusion(small_classifier(pair=len(texts) > 1))
    found = weights_of_texts(model, texts)
    ids = ids_of(*texts)
    np.testing.assert_allclose(found.weights, of_tokens(model, [ids]), atol=1e-6)
    assert found.weights.shape == (1, 2) and np.ptp(found.weights) > 0.01
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0, atol=1e-6)
    assert (found.adapters, found.examples, found.tokens) == (["one", "two"], 1, len(ids[0]))


@pytest.mark.parametrize("made", FILES)
def test_all_tokens_of_all_examples(made, tmp_path, monkeypatch):
    monkeypatch.setattr("kbert.tasks.adapter_fusion.EVALUATION_TOKENS", 16)  # several batches
    file = tmp_path / "file.tsv"
    file.write_text(FILES[made])
    model = with_fusion(made())
    task = task_of(model)
    columns = dict.fromkeys(("text_a", "text_b", "label", *task.reading))
    examples = task.measured_examples(file, columns, model)
    packed = task.inputs(model, examples).packed
    places = [slice(a, a + n) for a, n in zip(packed.starts, packed.lengths)]
    rows = [(packed.token_ids[place], packed.segment_ids[place]) for place in places]
    assert len(rows) == {small_classifier: 3, small_embedder: 4}.get(made, 2)
    found = weights_of_examples(model, examples)
    np.testing.assert_allclose(found.weights, of_tokens(model, rows), atol=1e-6)
    assert (found.examples, found.tokens) == (len(examples), sum(packed.lengths))
    if made is small_classifier:
        np.testing.assert_array_equal(rows[0][0], ids_of("a good film")[0])


def test_who_has_a_fusion():
    model = small_classifier()
    assert fused_encoder(model) is None
    fused = with_fusion(model).encoder
    assert fused_encoder(model) is fused
    reading = SimpleNamespace(encoder=FeatureBasedEncoder(fused, "last", "linear"))
    assert fused_encoder(reading) is fused
    fused.set_active_adapters("one")
    assert fused_encoder(model) is None and fused_encoder(SimpleNamespace()) is None


def test_no_examples():
    model = with_fusion(small_classifier())
    with pytest.raises(ValueError, match="`examples` must be one or more. Received: none in a.tsv"):
        weights_of_examples(model, TextExamples([], None, None, None, "a.tsv", []))
