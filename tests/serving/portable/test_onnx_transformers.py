"""A translator's three networks, in ONNX Runtime, give what the Keras model gives."""

import numpy as np
import onnxruntime
import pytest

from kbert.models.bert import Bert
from kbert.models.encoder_decoders.bahdanau import Bahdanau
from kbert.models.encoder_decoders.bert_fused_transformer import BertFusedTransformer
from kbert.models.encoder_decoders.transformer import Transformer
from kbert.serving.portable.onnx_transformers import check_transformer, transformer_networks

CLOSE = {"rtol": 0, "atol": 1e-4}
SIZES = (23, 16, 2, 2, 4, 32, 12)
KINDS = {
    "as in the paper": {},
    "as Marian": {"positions": "sinusoidal_halves", "activation": "silu", "output_bias": True},
    "pre-norm": {"norm": "pre", "positions": "learned", "tied": "target"},
    "vocabularies apart": {"tied": "none", "source_vocabulary_size": 19, "output_bias": True},
}


def varied(model):
    """The model with biases and scales that are not 0 and 1, and scores that differ."""
    random = np.random.default_rng(7)
    for variable in model.weights:
        if variable.trainable:
            variable.assign(np.asarray(variable) + random.normal(0, 0.2, variable.shape))
    return model


def small_transformer(**options):
    return varied(Transformer(*SIZES, **options))


def small_fused(**options):
    bert = Bert(11, 8, 1, 2, 16, max_sequence_length=9)
    return varied(BertFusedTransformer(*SIZES, bert=bert, **options))


def sources(model):
    """Two sources, the second with padding, in the model's tokens and in BERT's."""
    random = np.random.default_rng(1)
    found = {}
    for name, length, real in (("source", 7, 4), ("bert", 6, 3)):
        mask = np.ones((2, length), bool)
        mask[1, real:] = False
        ids = random.integers(0, 11, (2, length)).astype("int32")
        found |= {f"{name}_token_ids": ids, f"{name}_padding_mask": mask}
    return found if model.bert is not None else dict(list(found.items())[:2])


class Networks:
    """The three networks of a model in ONNX Runtime."""

    def __init__(self, model):
        self.sessions = {
            name: onnxruntime.InferenceSession(graph.model(name, {}, "0").SerializeToString())
            for name, graph in transformer_networks(model).items()
        }

    def run(self, name, given):
        session = self.sessions[name]
        read = {one.name: given[one.name] for one in session.get_inputs()}
        outputs = [one.name for one in session.get_outputs()]
        return dict(zip(outputs, session.run(outputs, read)))

    def encode(self, inputs):
        """What `encoder_model` gives, under the names by which decoders ask for it."""
        masks = {"attention_mask": inputs["source_padding_mask"].astype("int64")}
        masks["encoder_attention_mask"] = masks["attention_mask"]
        given = {"input_ids": inputs["source_token_ids"].astype("int64")}
        if "bert_token_ids" in inputs:
            given["bert_input_ids"] = inputs["bert_token_ids"].astype("int64")
            masks["bert_attention_mask"] = inputs["bert_padding_mask"].astype("int64")
        found = self.run("encoder_model", given | masks)
        states = {"encoder_hidden_states": found["last_hidden_state"]}
        if "bert_hidden_state" in found:
            states["bert_hidden_states"] = found["bert_hidden_state"]
        return masks | states


def check_all_three(model):
    """Compares states, logits of a whole target, and logits of one token more at each step."""
    inputs, target = sources(model), np.array([[2, 9, 5, 1, 7], [2, 3, 3, 8, 0]], "int32")
    memory = model.encode(inputs)
    expected = np.asarray(model.decode(target, memory))
    networks = Networks(model)
    given = networks.encode(inputs)
    real = inputs["source_padding_mask"]
    states = np.asarray(memory["states"])[real]
    np.testing.assert_allclose(given["encoder_hidden_states"][real], states, **CLOSE)
    ids = target.astype("int64")
    whole = networks.run("decoder_model", given | {"input_ids": ids})
    np.testing.assert_allclose(whole["logits"], expected, **CLOSE)
    found = networks.run("decoder_model", given | {"input_ids": ids[:, :2]})
    for time in range(2, ids.shape[1]):
        given |= {name.replace("present", "past_key_values"): one for name, one in found.items()}
        given["input_ids"] = ids[:, time : time + 1]
        found = networks.run("decoder_with_past_model", given)
        np.testing.assert_allclose(found["logits"][:, 0], expected[:, time], **CLOSE)
        held = whole["present.1.decoder.value"][:, :, : time + 1]
        np.testing.assert_allclose(found["present.1.decoder.value"], held, **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_a_transformer(kind):
    check_all_three(small_transformer(**KINDS[kind]))


@pytest.mark.parametrize("branches", [None, (1.0, 0.0), (0.25, 0.75)])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_transformer_with_bert(norm, branches):
    check_all_three(small_fused(norm=norm, branch_weights=branches))


def test_names_are_those_of_optimum():
    """As `optimum-cli export onnx` writes a Marian model of two decoder layers."""
    sessions = Networks(small_transformer()).sessions
    caches = [f"{i}.{whose}.{part}" for i in (0, 1) for whose in ("decoder", "encoder")
              for part in ("key", "value")]
    own = [name for name in caches if "decoder" in name]
    expected = {
        "encoder_model": ({"input_ids", "attention_mask"}, ["last_hidden_state"]),
        "decoder_model": (
            {"input_ids", "encoder_attention_mask", "encoder_hidden_states"},
            ["logits", *(f"present.{name}" for name in caches)],
        ),
        "decoder_with_past_model": (
            {"input_ids", "encoder_attention_mask", *(f"past_key_values.{n}" for n in caches)},
            ["logits", *(f"present.{name}" for name in own)],
        ),
    }
    for name, session in sessions.items():
        inputs = {one.name for one in session.get_inputs()}
        assert (inputs, [one.name for one in session.get_outputs()]) == expected[name]
    axes = ["batch_size", 4, "past_decoder_sequence_length", 4]
    past = {one.name: one.shape for one in sessions["decoder_with_past_model"].get_inputs()}
    assert past["past_key_values.1.decoder.key"] == axes


def test_another_model_is_refused():
    with pytest.raises(ValueError, match="must translate by a Transformer.* a Bahdanau"):
        check_transformer(Bahdanau(23, 16, embedding_dim=8))
    check_transformer(small_fused())
