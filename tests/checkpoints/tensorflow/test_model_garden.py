"""Model Garden's checkpoints, written by its real encoders and models."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.checkpoints.tensorflow.model_garden import read_model_garden
from tests import numpy_reference as reference
from tests.checkpoints.synthetic_bert import CONFIG, GOOGLE_CONFIG, write_vocabulary

tf = pytest.importorskip("tensorflow")
pytest.importorskip("official.nlp", reason="needs tf-models-official")

from official.nlp.modeling import models, networks  # noqa: E402  (may be missing, see above)

IDS = np.array([[2, 5, 7, 3, 0], [2, 6, 10, 9, 3]])
MASK = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
SEGMENTS = np.array([[0, 0, 1, 1, 0], [0, 1, 1, 1, 1]])
GARDEN = CONFIG | {"attention_dropout": 0.1, "activation": "gelu_approximate"}


@pytest.fixture(scope="module")
def encoder() -> Any:
    made = networks.BertEncoderV2(
        vocab_size=11,
        hidden_size=4,
        num_layers=2,
        num_attention_heads=2,
        max_sequence_length=8,
        type_vocab_size=2,
        inner_dim=6,
    )
    made(made.inputs)
    rng = np.random.default_rng(3)
    # Far from the initial zeros and ones, so that no two weights can be confused.
    made.set_weights([rng.normal(size=weight.shape) for weight in made.get_weights()])
    return made


def _forward(arrays: dict[str, np.ndarray], num_heads: int) -> tuple[np.ndarray, np.ndarray]:
    """BERT by the NumPy reference, on the canonical arrays."""
    x = (
        arrays["embeddings/token_embedding/embeddings"][IDS]
        + arrays["embeddings/position_embedding/embeddings"][: IDS.shape[1]]
        + arrays["embeddings/segment_embedding/embeddings"][SEGMENTS]
    )

    def norm(y: np.ndarray, name: str) -> np.ndarray:
        return reference.layer_norm(
            y, arrays[f"{name}/layer_norm/gamma"], arrays[f"{name}/layer_norm/beta"]
        )

    x = norm(x, "embeddings")
    mask = reference.key_mask(MASK, IDS.shape[1])[:, None]
    for block in ("encoder_block_0", "encoder_block_1"):
        name = f"{block}/attention/qkv"
        qkv = reference.dense(x, arrays[f"{name}/kernel"], arrays[f"{name}/bias"])
        heads = [reference.split_heads(part, num_heads) for part in np.split(qkv, 3, axis=-1)]
        context, _ = reference.scaled_dot_product_attention(*heads, mask)
        name = f"{block}/attention/output"
        out = reference.dense(
            reference.merge_heads(context), arrays[f"{name}/kernel"], arrays[f"{name}/bias"]
        )
        x = norm(x + out, f"{block}/attention_residual")
        inner, outer = f"{block}/feed_forward/intermediate", f"{block}/feed_forward/output"
        out = reference.feed_forward(
            x,
            arrays[f"{inner}/kernel"],
            arrays[f"{inner}/bias"],
            arrays[f"{outer}/kernel"],
            arrays[f"{outer}/bias"],
            "gelu_approximate",
        )
        x = norm(x + out, f"{block}/feed_forward_residual")
    pooled = np.tanh(reference.dense(x[:, 0], arrays["pooler/kernel"], arrays["pooler/bias"]))
    return x, pooled


def _save(folder: Path, **items: Any) -> str:
    return str(tf.train.Checkpoint(**items).save(str(folder / "ckpt")))


def _same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def test_the_arrays_compute_what_the_encoder_computes(tmp_path: Path, encoder: Any) -> None:
    prefix = _save(tmp_path, encoder=encoder)
    checkpoint = read_model_garden(prefix)
    assert checkpoint.config == GARDEN
    assert checkpoint.format == "model_garden"
    assert len(checkpoint.arrays) == 31
    assert any("No bert_config.json and no params.yaml" in line for line in checkpoint.report)
    assert "Left out what is not of the encoder: save_counter." in checkpoint.report
    outline = read_model_garden(prefix, values=False)
    assert (outline.config, outline.report) == (checkpoint.config, checkpoint.report)
    kinds = [{n: (a.shape, a.dtype) for n, a in c.arrays.items()} for c in (outline, checkpoint)]
    assert kinds[0] == kinds[1] and not any(a.any() for a in outline.arrays.values())
    given = {"input_word_ids": IDS, "input_mask": MASK, "input_type_ids": SEGMENTS}
    expected = encoder({name: tf.constant(value, tf.int32) for name, value in given.items()})
    sequence, pooled = _forward(checkpoint.arrays, num_heads=2)
    # float32 against float64 over two layers of width 4.
    np.testing.assert_allclose(sequence, expected["sequence_output"], atol=2e-5)
    np.testing.assert_allclose(pooled, expected["pooled_output"], atol=2e-5)


def test_wherever_the_encoder_lies(tmp_path: Path, encoder: Any) -> None:
    expected = read_model_garden(_save(tmp_path / "encoder", encoder=encoder)).arrays
    model = read_checkpoint(_save(tmp_path / "model", model=encoder))
    assert _same(model.arrays, expected)

    classifier = models.BertClassifier(network=encoder, num_classes=3)
    kernel = np.arange(12, dtype=np.float32).reshape(4, 3)
    classifier.classifier.set_weights([kernel, np.float32([1, 2, 3])])
    read = read_checkpoint(_save(tmp_path / "classifier", model=classifier))
    assert _same(read.arrays, expected)
    np.testing.assert_array_equal(read.heads["classifier.weight"], kernel.T)
    assert read.heads["classifier.bias"].tolist() == [1, 2, 3]

    spans = models.BertSpanLabeler(network=encoder)
    read = read_checkpoint(_save(tmp_path / "spans", model=spans))
    assert _same(read.arrays, expected)
    assert read.heads == {}
    assert any("layer_with_weights-1/layer_with_weights-0/bias" in line for line in read.report)


def test_a_table_shared_with_the_masked_lm(tmp_path: Path, encoder: Any) -> None:
    expected = read_model_garden(_save(tmp_path / "encoder", encoder=encoder)).arrays
    pretrainer = models.BertPretrainerV2(encoder_network=encoder)
    pretrainer(pretrainer.inputs)
    prefix = _save(tmp_path / "pretrainer", model=pretrainer)
    # The table stands under the masked LM's name alone; the object graph leads to it.
    keys = [name for name, _ in tf.train.list_variables(prefix)]
    assert not any("/_embedding_layer/" in key for key in keys)
    read = read_checkpoint(prefix)
    assert _same(read.arrays, expected)
    dense = pretrainer.masked_lm.dense.kernel.numpy()
    np.testing.assert_array_equal(read.heads["cls.predictions.transform.dense.weight"], dense.T)
    assert len(read.heads) == 5


@pytest.mark.parametrize("root", ["model", "encoder"])
def test_a_functional_encoder(tmp_path: Path, root: str) -> None:
    old = networks.BertEncoder(
        vocab_size=11,
        hidden_size=4,
        num_layers=2,
        num_attention_heads=2,
        max_sequence_length=8,
        type_vocab_size=2,
        inner_dim=6,
    )
    rng = np.random.default_rng(4)
    old.set_weights([rng.normal(size=weight.shape) for weight in old.get_weights()])
    expected = read_model_garden(_save(tmp_path / "old", model=old)).arrays
    # The published files know the layers by their numbers alone: layer_with_weights-0, ...
    import tf_keras

    plain = tf_keras.Model(old.inputs, old.outputs)
    read = read_model_garden(_save(tmp_path / "plain", **{root: plain}))
    assert _same(read.arrays, expected)
    assert read.config == GARDEN


def test_bert_config_beside_it(tmp_path: Path, encoder: Any) -> None:
    prefix = _save(tmp_path, encoder=encoder)
    (tmp_path / "bert_config.json").write_text(json.dumps(GOOGLE_CONFIG))
    write_vocabulary(tmp_path)
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.config == GARDEN | {"attention_dropout": 0.2}
    assert checkpoint.vocabulary_path == tmp_path / "vocab.txt"
    (tmp_path / "bert_config.json").write_text(json.dumps(GOOGLE_CONFIG | {"vocab_size": 12}))
    with pytest.raises(
        ValueError, match=r"_embedding_layer/embeddings \(expected \(12, 4\), found \(11, 4\)\)"
    ):
        read_model_garden(prefix)


def test_params_yaml_beside_it(tmp_path: Path, encoder: Any) -> None:
    prefix = _save(tmp_path, model=encoder)
    (tmp_path / "params.yaml").write_text(
        "task:\n  model:\n    encoder:\n      type: bert\n      bert:\n"
        "        {vocab_size: 11, hidden_size: 4, num_layers: 2, num_attention_heads: 2,\n"
        "         intermediate_size: 6, max_position_embeddings: 8, type_vocab_size: 2,\n"
        "         hidden_activation: relu, dropout_rate: 0.3, attention_dropout_rate: 0.4}\n"
    )
    config = read_model_garden(prefix).config
    assert config == CONFIG | {"activation": "relu", "dropout": 0.3, "attention_dropout": 0.4}
    (tmp_path / "params.yaml").write_text("encoder: {hidden_size: 4, num_attention_heads: 3}")
    with pytest.raises(ValueError, match="`hidden_dim` must be a multiple of `num_heads`"):
        read_model_garden(prefix)
    (tmp_path / "params.yaml").write_text("task: {}")
    with pytest.raises(ValueError, match="must hold the fields of an encoder"):
        read_model_garden(prefix)
    (tmp_path / "params.yaml").write_text("task: {")
    with pytest.raises(ValueError, match="params.yaml` must be a YAML file"):
        read_model_garden(prefix)


def test_pre_norm_is_refused(tmp_path: Path, encoder: Any) -> None:
    prefix = _save(tmp_path, model=encoder)
    (tmp_path / "params.yaml").write_text(
        "{hidden_size: 4, num_attention_heads: 2, norm_first: true}"
    )
    with pytest.raises(ValueError, match="`norm_first` must be false"):
        read_model_garden(prefix)


def test_a_factorized_embedding_is_refused(tmp_path: Path) -> None:
    made = networks.BertEncoderV2(
        vocab_size=11, hidden_size=4, num_layers=1, num_attention_heads=2, embedding_width=2
    )
    made(made.inputs)
    with pytest.raises(ValueError, match="not known: encoder/_embedding_projection/bias"):
        read_model_garden(_save(tmp_path, encoder=made))


def test_another_model(tmp_path: Path) -> None:
    prefix = _save(tmp_path, thing=tf.Variable([1.0]))
    with pytest.raises(ValueError, match="must hold a BertEncoder of Model Garden.*thing/.ATTRIB"):
        read_model_garden(prefix)
