"""The logits of transformers for masked tokens and pairs, from folders that transformers wrote."""

import json

import numpy as np
import pytest
import tensorflow as tf

from kbert.tasks.load import load
from tests.small_pipelines import VOCABULARY
from tests.transformers_process import run_with_transformers

# What transformers' classes are made of here, and what they are to kbert.
CASES = {
    "BertForPreTraining": "mlm_nsp",
    "BertForMaskedLM": "mlm",
    "BertLMHeadModel": "lm",
}
TEXT = "A [MASK] film, very [MASK]ness bad."
PAIR = ("the good film", "a [MASK] bad!")
PEER = '''
import json, sys
import numpy, torch, transformers
folder, cases, text, pair = json.loads(sys.argv[1])
for name in cases:
    here = folder + "/" + name
    torch.manual_seed(0)
    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=40, max_position_embeddings=32, initializer_range=0.1,
        is_decoder=name == "BertLMHeadModel")
    model = getattr(transformers, name)(config).eval()
    torch.nn.init.normal_(model.cls.predictions.bias)
    model.save_pretrained(here)
    tokenizer.save_pretrained(here)
    found = {}
    for key, texts in (("text", [text]), ("pair", pair)):
        inputs = tokenizer(*texts, return_tensors="pt")
        with torch.no_grad():
            outputs = model(**inputs)
        if name == "BertForPreTraining":
            tokens = outputs.prediction_logits
            found[key + "_pair"] = outputs.seq_relationship_logits
        else:
            tokens = outputs.logits
        found |= {f"{key}_{part}": values for part, values in inputs.items()}
        found[key + "_tokens"] = tokens
        with torch.no_grad():
            exact = model.double()(**inputs)
        found[key + "_exact"] = exact[0]  # the logits of the tokens
        model.float()
    numpy.savez(here + "/found.npz", **{key: value.numpy() for key, value in found.items()})
'''


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrained")
    VOCABULARY.save(folder / "vocab.txt")
    (folder / "config.json").write_text('{"model_type": "bert"}')
    run_with_transformers(PEER, json.dumps([str(folder), list(CASES), TEXT, PAIR]))
    return folder


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@pytest.mark.parity
@pytest.mark.parametrize("name", CASES)
def test_equal_to_transformers(folders, name):
    found = np.load(folders / name / "found.npz")
    model = load(folders / name, max_sequence_length=32, stride=8)
    assert model.objective == CASES[name]
    logits = {}
    for key in ("text", "pair"):
        ids = found[f"{key}_input_ids"].astype("int32")
        segments = found[f"{key}_token_type_ids"].astype("int32")
        outputs = model({"token_ids": ids, "segment_ids": segments})
        np.testing.assert_allclose(outputs[model.tokens], found[f"{key}_tokens"], atol=1e-5)
        logits[key] = found[f"{key}_tokens"][0]
        if model.learns_pairs:
            np.testing.assert_allclose(outputs["next_sentence"], found[f"{key}_pair"], atol=1e-5)
    # In float64 little is left: the square root of 2 in TensorFlow's GELU is one of float32.
    exact = load(folders / name, max_sequence_length=32, stride=8, dtype="float64")
    outputs = exact({"token_ids": ids, "segment_ids": segments})
    np.testing.assert_allclose(outputs[model.tokens], found["pair_exact"], atol=2e-8)
    # From the raw string: the same tokens, and the words of the best logits.
    places = np.flatnonzero(found["text_input_ids"][0] == VOCABULARY.mask_id)
    assert len(places) == 2
    expected = softmax(logits["text"][places - (1 if model.encoder.causal else 0)])
    (answer,) = model.answers([TEXT])
    for mask, probabilities in zip(answer["masks"], expected, strict=True):
        best = np.argsort(-probabilities)[: model.nbest]
        assert [one["word"] for one in mask["words"]] == [VOCABULARY.tokens[i] for i in best]
        scores = [one["score"] for one in mask["words"]]
        np.testing.assert_allclose(scores, probabilities[best], atol=1e-5)
    if model.learns_pairs:
        score = model.follows(*(tf.constant([text]) for text in PAIR))["score"]
        np.testing.assert_allclose(score, softmax(found["pair_pair"])[:, 0], atol=1e-5)
