"""Folders of sentence-transformers: what is read, written and refused."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from kbert.models.bert import Bert
from kbert.tasks.embedding.model import TextEmbedder
from kbert.tasks.load import load
from tests.small_pipelines import TEXTS, small_embedder

FORMAT = "sentence-transformers"


def put(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def got(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path):
    return small_embedder(dense=5).save_pretrained(tmp_path / "saved", format=FORMAT)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"normalize": False, "pooling": "cls"},
        {"dense": 5, "pooling": "max"},
        {"dense": 5, "dense_activation": None},
    ],
)
def test_there_and_back(tmp_path, settings):
    model = small_embedder(**settings)
    again = load(model.save_pretrained(tmp_path / "saved", format=FORMAT))
    assert type(again) is TextEmbedder and again.get_config() == model.get_config()
    np.testing.assert_allclose(again(TEXTS), model(TEXTS), atol=1e-6)


def test_the_files(folder):
    modules = got(folder / "modules.json")
    assert [module["path"] for module in modules] == ["", "1_Pooling", "2_Dense", "3_Normalize"]
    assert modules[2] == {
        "idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"
    }
    assert got(folder / "sentence_bert_config.json")["max_seq_length"] == 24
    assert got(folder / "1_Pooling" / "config.json")["pooling_mode_mean_tokens"] is True
    assert load_file(folder / "2_Dense" / "model.safetensors")["linear.weight"].shape == (5, 16)
    assert (folder / "3_Normalize").is_dir()


def test_the_newest_layout(folder):
    """As version 6.2 writes it: other names of types and pooling, and the length elsewhere."""
    modules = got(folder / "modules.json")
    for module in modules:
        kind = module["type"].split(".")[-1]
        module["type"] = f"sentence_transformers.base.modules.{kind.lower()}.{kind}"
    put(folder / "modules.json", modules)
    put(folder / "1_Pooling" / "config.json", {"embedding_dimension": 16, "pooling_mode": "max"})
    put(folder / "sentence_bert_config.json", {"transformer_task": "feature-extraction"})
    model = load(folder)
    assert model.pooling == "max" and model.max_sequence_length == 24
    (folder / "tokenizer_config.json").unlink()
    assert load(folder).max_sequence_length == 32  # the encoder's positions


def test_what_is_asked_for_counts(folder):
    model = TextEmbedder.from_pretrained(folder, normalize=False, max_sequence_length=9)
    assert not model.normalize and model.max_sequence_length == 9 and model.dense == 5


def test_a_dense_layer_without_a_bias(folder):
    path = folder / "2_Dense" / "model.safetensors"
    save_file({"linear.weight": load_file(path)["linear.weight"]}, path)
    np.testing.assert_array_equal(load(folder).dense_layer.bias, np.zeros(5))


def test_the_encoder_alone_needs_no_modules(folder):
    put(folder / "modules.json", [{"type": "x.Unknown", "path": ""}])
    assert Bert.from_pretrained(folder).hidden_dim == 16


TYPE = "sentence_transformers.models."
DENSE = {"activation_function": "torch.nn.modules.activation.Softmax"}


@pytest.mark.parametrize(
    "file, value, message",
    [
        ("modules.json", {"a": 1}, r"modules.json` must be a list of modules, each with `type`"),
        (
            "modules.json",
            [{"type": f"{TYPE}{kind}", "path": ""} for kind in ("Transformer", "WordWeights")],
            "modules.json` must have the modules Transformer .* Received: Transformer, WordWeights",
        ),
        ("modules.json", [{"type": f"{TYPE}Pooling", "path": "1"}], "Received: Pooling$"),
        (
            "1_Pooling/config.json",
            {"pooling_mode_mean_sqrt_len_tokens": True},
            r"config.json`: the pooling must be one of \['mean', 'cls', 'max'\]. Received: pooling_"
            "mode_mean_sqrt_len_tokens",
        ),
        (
            "1_Pooling/config.json",
            {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True},
            r"Received: \['cls', 'mean'\]",
        ),
        ("2_Dense/config.json", DENSE, "must have an activation_function of .*Softmax'"),
        (
            "config_sentence_transformers.json",
            {"default_prompt_name": "query", "prompts": {"query": "query: "}},
            "`default_prompt_name` must be null.* Received: default_prompt_name='query'",
        ),
        (
            "sentence_bert_config.json",
            {"max_seq_length": 9, "do_lower_case": True},
            "`do_lower_case` must be false",
        ),
    ],
)
def test_what_is_refused(folder, file, value, message):
    put(folder / file, value)
    with pytest.raises(ValueError, match=message):
        load(folder)


def test_weights_that_are_missing(folder):
    path = folder / "2_Dense" / "model.safetensors"
    save_file({"other": np.zeros(2, "float32")}, path)
    with pytest.raises(ValueError, match="must hold linear.weight. Received: other"):
        load(folder)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="must hold the weights of the dense layer"):
        load(folder)


def test_an_activation_that_has_no_name_there(tmp_path):
    model = small_embedder(dense=5, dense_activation="gelu_approximate")
    with pytest.raises(ValueError, match="`dense_activation` must be one of .* for sentence-tran"):
        model.save_pretrained(tmp_path / "saved", format=FORMAT)
    assert not (tmp_path / "saved").exists()


def test_the_published_model(minilm_directory):
    model = load(minilm_directory)
    assert (model.pooling, model.normalize, model.max_sequence_length) == ("mean", True, 256)
