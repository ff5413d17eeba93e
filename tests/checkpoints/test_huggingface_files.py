"""Hugging Face's format: what is read, what comes back, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from kbert.checkpoints.huggingface_files import read_huggingface, write_huggingface
from kbert.pipelines.tokenizers import tokenizer_of
from tests.checkpoints.synthetic_bert import CONFIG, hf_tensors, same_bytes, write_hf

SEQUENCE = {"classifier.weight": (3, 4), "classifier.bias": (3,)}
TOKENS = {
    "cls.predictions.bias": (11,),
    "cls.predictions.transform.dense.weight": (4, 4),
    "cls.predictions.transform.dense.bias": (4,),
    "cls.predictions.transform.LayerNorm.weight": (4,),
    "cls.predictions.transform.LayerNorm.bias": (4,),
}
PAIRS = {"cls.seq_relationship.weight": (2, 4), "cls.seq_relationship.bias": (2,)}
SPANS = {"qa_outputs.weight": (2, 4), "qa_outputs.bias": (2,)}


def test_names_shapes_and_layout(tmp_path: Path) -> None:
    tensors = hf_tensors()
    checkpoint = read_huggingface(write_hf(tmp_path / "model", tensors))
    assert checkpoint.config == CONFIG
    assert checkpoint.format == "huggingface"
    assert len(checkpoint.arrays) == 5 + 2 * 12 + 2
    layer = "encoder.layer.1."
    qkv = [f"{layer}attention.self.{part}.weight" for part in ("query", "key", "value")]
    parts = [tensors[name].T for name in qkv]
    expected = {
        "embeddings/token_embedding/embeddings": tensors["embeddings.word_embeddings.weight"],
        "embeddings/layer_norm/gamma": tensors["embeddings.LayerNorm.weight"],
        "encoder_block_1/attention/qkv/kernel": np.concatenate(parts, axis=1),
        "encoder_block_1/attention/output/kernel": tensors[
            f"{layer}attention.output.dense.weight"
        ].T,
        "encoder_block_1/attention_residual/layer_norm/beta": tensors[
            f"{layer}attention.output.LayerNorm.bias"
        ],
        "encoder_block_1/feed_forward/intermediate/kernel": tensors[
            f"{layer}intermediate.dense.weight"
        ].T,
        "encoder_block_1/feed_forward/output/kernel": tensors[f"{layer}output.dense.weight"].T,
        "encoder_block_1/feed_forward_residual/layer_norm/gamma": tensors[
            f"{layer}output.LayerNorm.weight"
        ],
        "pooler/kernel": tensors["pooler.dense.weight"].T,
    }
    for name, array in expected.items():
        np.testing.assert_array_equal(checkpoint.arrays[name], array, err_msg=name)
        assert checkpoint.arrays[name].flags.c_contiguous


def test_transposition_by_hand(tmp_path: Path) -> None:
    # D = 2, one layer. torch.nn.Linear computes x W^T: its weight's rows are the outputs, so they
    # are the columns of a kernel.
    tensors = {
        name: np.zeros([2 if size == 4 else size for size in array.shape], np.float32)
        for name, array in hf_tensors().items()
        if "layer.1" not in name
    }
    for part, first in (("query", 1), ("key", 5), ("value", 9)):
        weight = np.arange(first, first + 4, dtype=np.float32).reshape(2, 2)
        tensors[f"encoder.layer.0.attention.self.{part}.weight"] = weight
        tensors[f"encoder.layer.0.attention.self.{part}.bias"] = np.float32([first, -first])
    folder = write_hf(tmp_path / "model", tensors, hidden_size=2, num_hidden_layers=1)
    arrays = read_huggingface(folder).arrays
    # query [[1, 2], [3, 4]], key [[5, 6], [7, 8]], value [[9, 10], [11, 12]]
    assert arrays["encoder_block_0/attention/qkv/kernel"].tolist() == [
        [1, 3, 5, 7, 9, 11],
        [2, 4, 6, 8, 10, 12],
    ]
    assert arrays["encoder_block_0/attention/qkv/bias"].tolist() == [1, -1, 5, -5, 9, -9]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("architecture", "heads", "prefix"),
    [
        ("BertModel", {}, ""),
        ("BertModel", {}, "bert."),
        ("BertForSequenceClassification", SEQUENCE, "bert."),
        ("BertForTokenClassification", SEQUENCE, "bert."),
        ("BertForQuestionAnswering", SPANS, "bert."),
        ("BertForMaskedLM", TOKENS, "bert."),
        ("BertForPreTraining", {**TOKENS, **PAIRS}, "bert."),
    ],
)
def test_round_trip_byte_for_byte(
    tmp_path: Path, dtype: str, architecture: str, heads: dict[str, tuple[int, ...]], prefix: str
) -> None:
    with_pooler = ("BertModel", "BertForSequenceClassification", "BertForPreTraining")
    pooler = architecture in with_pooler
    tensors = hf_tensors(dtype, prefix, pooler, heads)
    folder = write_hf(tmp_path / "a", tensors, architectures=[architecture], my_field=[1, {"x": 2}])
    checkpoint = read_huggingface(folder)
    write_huggingface(checkpoint, tmp_path / "b")
    written = load_file(tmp_path / "b" / "model.safetensors")
    # The prefix is there just when there are heads, as transformers writes it.
    wanted = tensors if heads else {n.removeprefix("bert."): t for n, t in tensors.items()}
    assert written.keys() == wanted.keys()
    assert all(same_bytes(written[name], wanted[name]) for name in wanted)
    raw = json.loads((tmp_path / "b" / "config.json").read_text())
    assert raw["architectures"] == [architecture]
    assert raw["my_field"] == [1, {"x": 2}]
    assert raw["torch_dtype"] == dtype
    assert (tmp_path / "b" / "vocab.txt").read_bytes() == (folder / "vocab.txt").read_bytes()
    with (tmp_path / "b" / "model.safetensors").open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    assert header["__metadata__"] == {"format": "pt"}


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    first = read_huggingface(write_hf(tmp_path / "a", hf_tensors(), hidden_act="gelu_new"))
    assert first.config["activation"] == "gelu_approximate"
    write_huggingface(first, tmp_path / "b")
    second = read_huggingface(tmp_path / "b")
    assert second.config == first.config
    assert second.lowercase == first.lowercase
    assert json.loads((tmp_path / "b" / "config.json").read_text())["hidden_act"] == "gelu_new"


def test_old_names_of_layer_norm(tmp_path: Path) -> None:
    heads = {"cls.predictions.transform.LayerNorm.weight": (4,), "cls.predictions.bias": (11,)}
    old = hf_tensors(prefix="bert.", heads=heads, old_names=True)
    new = hf_tensors(prefix="bert.", heads=heads)
    assert "bert.embeddings.LayerNorm.gamma" in old
    a = read_huggingface(write_hf(tmp_path / "old", old))
    b = read_huggingface(write_hf(tmp_path / "new", new))
    assert a.arrays.keys() == b.arrays.keys()
    assert all(same_bytes(a.arrays[name], b.arrays[name]) for name in b.arrays)
    assert sorted(a.heads) == sorted(heads)
    assert "Read gamma and beta as weight and bias in 11 LayerNorm tensors." in a.report


def test_copies_of_tied_weights_are_left_out(tmp_path: Path) -> None:
    tensors = hf_tensors(prefix="bert.", heads={**TOKENS, **PAIRS})
    table = tensors["bert.embeddings.word_embeddings.weight"]
    copies = {
        "cls.predictions.decoder.weight": table,
        "cls.predictions.decoder.bias": tensors["cls.predictions.bias"],
    }
    folder = write_hf(
        tmp_path / "a",
        tensors | {name: array.copy() for name, array in copies.items()},
        architectures=["BertForPreTraining"],
    )
    checkpoint = read_huggingface(folder)
    assert sorted(checkpoint.heads) == sorted({**TOKENS, **PAIRS})
    assert f"Left out, as they are copies of other weights: {', '.join(copies)}." in (
        checkpoint.report
    )
    write_huggingface(checkpoint, tmp_path / "b")
    written = load_file(tmp_path / "b" / "model.safetensors")
    assert written.keys() == tensors.keys()
    assert all(same_bytes(written[name], tensors[name]) for name in tensors)


def test_a_causal_encoder(tmp_path: Path) -> None:
    folder = write_hf(
        tmp_path / "a",
        hf_tensors(prefix="bert.", pooler=False, heads=TOKENS),
        architectures=["BertLMHeadModel"],
        is_decoder=True,
    )
    checkpoint = read_huggingface(folder)
    assert checkpoint.config == CONFIG | {"causal": True}
    write_huggingface(checkpoint, tmp_path / "b")
    raw = json.loads((tmp_path / "b" / "config.json").read_text())
    assert (raw["architectures"], raw["is_decoder"]) == (["BertLMHeadModel"], True)
    with pytest.raises(ValueError, match="BertForTokenClassification, .*='BertForMaskedLM'"):
        write_huggingface(checkpoint, tmp_path / "c", architecture="BertForMaskedLM")
    # With a pooler, which reads another position than transformers' does, the report says so.
    folder = write_hf(tmp_path / "d", hf_tensors(), is_decoder=True)
    assert any("reads the last token" in line for line in read_huggingface(folder).report)


def test_both_names_at_once(tmp_path: Path) -> None:
    tensors = hf_tensors()
    tensors["embeddings.LayerNorm.gamma"] = tensors["embeddings.LayerNorm.weight"]
    folder = write_hf(tmp_path / "model", tensors)
    with pytest.raises(ValueError, match="LayerNorm.gamma and embeddings.LayerNorm.weight"):
        read_huggingface(folder)


def test_position_ids_are_reported_and_left_out(tmp_path: Path) -> None:
    tensors = hf_tensors() | {"embeddings.position_ids": np.arange(8)[None]}
    checkpoint = read_huggingface(write_hf(tmp_path / "model", tensors))
    assert "Left out, as they are no weights: embeddings.position_ids." in checkpoint.report
    assert len(checkpoint.arrays) == 31


def test_an_absent_pooler_is_reported(tmp_path: Path) -> None:
    checkpoint = read_huggingface(write_hf(tmp_path / "model", hf_tensors(pooler=False)))
    assert not checkpoint.has_pooler
    assert any("no pooler" in line for line in checkpoint.report)


def test_shards(tmp_path: Path) -> None:
    tensors = hf_tensors()
    folder = write_hf(tmp_path / "model", tensors)
    whole = read_huggingface(folder)
    (folder / "model.safetensors").unlink()
    weight_map = {}
    for number, names in enumerate((list(tensors)[:10], list(tensors)[10:]), start=1):
        shard = f"model-{number:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in names}, folder / shard)
        weight_map |= dict.fromkeys(names, shard)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    sharded = read_huggingface(folder)
    assert all(same_bytes(sharded.arrays[name], whole.arrays[name]) for name in whole.arrays)
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="Missing: model-00002-of-00002.safetensors"):
        read_huggingface(folder)


def test_missing_left_over_and_wrong_shapes_are_all_named(tmp_path: Path) -> None:
    tensors = hf_tensors(prefix="bert.")
    del tensors["bert.encoder.layer.0.attention.self.key.bias"]
    del tensors["bert.pooler.dense.bias"]
    tensors["bert.encoder.layer.2.output.dense.bias"] = np.zeros(4, np.float32)
    tensors["lora.weight"] = np.zeros(1, np.float32)
    tensors["bert.encoder.layer.1.intermediate.dense.weight"] = np.zeros((5, 4), np.float32)
    with pytest.raises(ValueError) as error:
        read_huggingface(write_hf(tmp_path / "model", tensors))
    text = str(error.value)
    assert "missing: encoder.layer.0.attention.self.key.bias, pooler.dense.bias;" in text
    assert "not known: bert.encoder.layer.2.output.dense.bias, lora.weight;" in text
    assert "encoder.layer.1.intermediate.dense.weight (expected (6, 4), found (5, 4))" in text


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (
            "model_type",
            "gpt2",
            "`model_type` must be 'bert' or 'albert' or 'roberta' or .* Received: .*='gpt2'",
        ),
        ("position_embedding_type", "relative_key", "`position_embedding_type` must be 'absolute'"),
        ("add_cross_attention", True, "`add_cross_attention` must be False or absent"),
        ("hidden_act", "mish", "`hidden_act` must be one of gelu, .*hidden_act='mish'"),
        ("num_attention_heads", 3, "`hidden_dim` must be a multiple of `num_heads`"),
        ("num_hidden_layers", "2", "`num_layers` must be a positive whole number"),
    ],
)
def test_configurations_that_are_refused(
    tmp_path: Path, field: str, value: object, message: str
) -> None:
    folder = write_hf(tmp_path / "model", hf_tensors(), **{field: value})
    with pytest.raises(ValueError, match=message):
        read_huggingface(folder)


def test_a_truncated_file(tmp_path: Path) -> None:
    folder = write_hf(tmp_path / "model", hf_tensors())
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    size = path.stat().st_size
    with pytest.raises(ValueError, match=f"must be a whole safetensors file.*{size} bytes"):
        read_huggingface(folder)


def test_broken_json(tmp_path: Path) -> None:
    folder = write_hf(tmp_path / "model", hf_tensors())
    (folder / "config.json").write_text('{"model_type": ')
    with pytest.raises(ValueError, match="config.json` must be a JSON file. Received: Expecting"):
        read_huggingface(folder)


def test_query_key_and_value_of_two_dtypes(tmp_path: Path) -> None:
    tensors = hf_tensors()
    name = "encoder.layer.0.attention.self.key.weight"
    tensors[name] = tensors[name].astype(np.float16)
    with pytest.raises(ValueError, match="must have one dtype. Received: float32, float16, float3"):
        read_huggingface(write_hf(tmp_path / "model", tensors))


def test_quantized_weights(tmp_path: Path) -> None:
    tensors = hf_tensors()
    tensors["pooler.dense.bias"] = np.zeros(4, np.int8)
    with pytest.raises(ValueError, match="pooler.dense.bias must be a tensor of .*dtype=I8"):
        read_huggingface(write_hf(tmp_path / "model", tensors))


def test_a_vocabulary_with_more_tokens_than_rows(tmp_path: Path) -> None:
    folder = write_hf(tmp_path / "model", hf_tensors())
    with (folder / "vocab.txt").open("a") as file:
        file.write("one\ntwo\n")
    with pytest.raises(ValueError, match="Received: 13 tokens, 11 rows"):
        read_huggingface(folder)


def test_writing_labels(tmp_path: Path) -> None:
    checkpoint = read_huggingface(
        write_hf(
            tmp_path / "a",
            hf_tensors(prefix="bert.", heads=SEQUENCE),
            architectures=["BertForSequenceClassification"],
            id2label={"0": "no", "1": "maybe", "2": "yes"},
        )
    )
    write_huggingface(checkpoint, tmp_path / "b")
    raw = json.loads((tmp_path / "b" / "config.json").read_text())
    assert raw["id2label"] == {"0": "no", "1": "maybe", "2": "yes"}
    assert raw["label2id"] == {"no": 0, "maybe": 1, "yes": 2}
    checkpoint.source_config = {}
    write_huggingface(checkpoint, tmp_path / "b", overwrite=True)
    raw = json.loads((tmp_path / "b" / "config.json").read_text())
    assert raw["id2label"] == {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}
    # The pooler tells BertForSequenceClassification from BertForTokenClassification.
    assert raw["architectures"] == ["BertForSequenceClassification"]


def test_an_architecture_that_is_asked_for(tmp_path: Path) -> None:
    checkpoint = read_huggingface(write_hf(tmp_path / "a", hf_tensors(heads=SEQUENCE)))
    write_huggingface(checkpoint, tmp_path / "b", architecture="BertForTokenClassification")
    assert not any("pooler" in name for name in load_file(tmp_path / "b" / "model.safetensors"))
    with pytest.raises(ValueError, match="Received: architecture='BertForQuestionAnswering'"):
        write_huggingface(checkpoint, tmp_path / "c", architecture="BertForQuestionAnswering")
    assert not (tmp_path / "c").exists()


def test_writing_what_does_not_fit(tmp_path: Path) -> None:
    checkpoint = read_huggingface(write_hf(tmp_path / "a", hf_tensors()))
    del checkpoint.arrays["pooler/bias"]
    with pytest.raises(ValueError, match="missing: pooler/bias"):
        write_huggingface(checkpoint, tmp_path / "b")


def test_a_minilm_round_trip(tmp_path: Path, minilm_directory: Path) -> None:
    checkpoint = read_huggingface(minilm_directory)
    # The parameters of a 6-layer encoder of width 384 with pooler, by hand:
    # D = 384, I = 1536: (30522 + 512 + 2 + 2) D + 6 (4 (D^2 + D) + 2 D I + I + D + 4 D) + D^2 + D
    assert sum(array.size for array in checkpoint.arrays.values()) == 22_713_216
    write_huggingface(checkpoint, tmp_path / "out")
    source = load_file(minilm_directory / "model.safetensors")
    written = load_file(tmp_path / "out" / "model.safetensors")
    assert source.keys() - written.keys() == {"embeddings.position_ids"}
    assert all(same_bytes(written[name], source[name]) for name in written)


def test_pieces_are_no_vocabulary_for_texts(tmp_path: Path) -> None:
    folder = write_hf(tmp_path / "model", hf_tensors())
    (folder / "vocab.txt").rename(folder / "spiece.model")
    checkpoint = read_huggingface(folder)
    assert checkpoint.vocabulary_bytes() is None
    assert "The source has no vocabulary but spiece.model." in checkpoint.report
    with pytest.raises(ValueError, match="Received: spiece.model, of SentencePiece, which is"):
        tokenizer_of(checkpoint)
