"""Named adapters of an encoder: numbers by the NumPy reference, and what trains and stays."""

import json
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.checkpoints.read_checkpoint import read_checkpoint, write_checkpoint
from kbert.layers.adapters.configs import HoulsbyConfig, LoraConfig, PfeifferConfig
from kbert.models.albert import Albert
from kbert.models.bert import Bert
from kbert.models.encoder import encoder_of
from tests import numpy_adapters as reference
from tests.small_bert import CONFIG, INPUTS, MASK, small_bert

NAMES = ("one", "two", "three")
ALL = ("query", "key", "value", "attention_output", "intermediate", "output")
CONFIGS = {
    "houlsby": HoulsbyConfig(adapter_dim=5, activation="silu"),
    "pfeiffer": PfeifferConfig(adapter_dim=4, activation="tanh"),
    "lora": LoraConfig(rank=2, alpha=6.0),
    "lora everywhere": LoraConfig(rank=3, alpha=5.0, targets=ALL),
    "lora of keys": LoraConfig(rank=1, alpha=1.0, targets=("key", "output")),
}


def draw_weights(parts: Any) -> None:
    """Random numbers for all weights of adapters, around 1 for gains."""
    for i, part in enumerate(parts):
        for j, weight in enumerate(part.weights):
            center = 1.0 if weight.path.endswith("gamma") else 0.0
            draw = np.random.default_rng(100 * i + j)
            weight.assign(draw.normal(center, 0.4, tuple(weight.shape)))


def adapted(kind: str, **options: Any) -> Bert:
    model = small_bert(**options)
    model.add_adapter("one", CONFIGS[kind])
    draw_weights(model.adapters.parts["one"].blocks)
    model.train_adapter("one")
    return model


def fused(regularization: float = 0.01, **options: Any) -> Bert:
    """Three Pfeiffer adapters and their fusion."""
    model = small_bert(**options)
    for i, name in enumerate(NAMES):
        model.add_adapter(name, CONFIGS["pfeiffer"])
        blocks = model.adapters.parts[name].blocks
        draw_weights(blocks[i:] + blocks[:i])
    model.add_adapter_fusion(NAMES, regularization)
    draw_weights(model.adapters.fusions["one+two+three"].blocks)
    model.train_adapter(NAMES)
    return model


def array(weight: Any) -> np.ndarray:
    return np.asarray(weight.value if hasattr(weight, "value") else weight)


def dense(name: str, layer: Any) -> dict[str, np.ndarray]:
    return {f"{name}/kernel": array(layer.kernel), f"{name}/bias": array(layer.bias)}


def norm(name: str, layer: Any) -> dict[str, np.ndarray]:
    return {f"{name}/gamma": array(layer.gamma), f"{name}/beta": array(layer.beta)}


def block_arrays(block: Any) -> dict[str, np.ndarray]:
    """A block's weights by the names of the reference."""
    found = dense("attention_output", block.attention.output_linear)
    found |= dense("intermediate", block.feed_forward.intermediate)
    found |= dense("output", block.feed_forward.output_linear)
    kernels = np.split(array(block.attention.qkv.kernel), 3, axis=1)
    biases = np.split(array(block.attention.qkv.bias), 3)
    for name, kernel, bias in zip(("query", "key", "value"), kernels, biases):
        found |= {f"{name}/kernel": kernel, f"{name}/bias": bias}
    found |= norm("attention_norm", block.attention_residual.layer_norm)
    return found | norm("output_norm", block.feed_forward_residual.layer_norm)


def bottleneck(name: str, layer: Any) -> dict[str, np.ndarray]:
    return dense(f"{name}/down", layer.down) | dense(f"{name}/up", layer.up)


def lora_arrays(part: Any) -> dict[str, np.ndarray]:
    found = {}
    for layer, added in part.low_rank.items():
        downs = np.split(array(added.down), len(added.targets), axis=1)
        names = [ALL[i] for i in added.targets] if layer == "qkv" else [layer]
        for name, down, up in zip(names, downs, array(added.up)):
            found |= {f"lora/{name}/a": down, f"lora/{name}/b": up}
    return found


def adapter_arrays(kind: str, part: Any) -> dict[str, np.ndarray]:
    if kind == "houlsby":
        found = {}
        for ours, theirs in (("attention", "attention"), ("feed_forward", "output")):
            found |= bottleneck(f"houlsby_{theirs}", part.bottlenecks[ours])
            found |= norm(f"houlsby_{theirs}/norm", part.norms[ours])
        return found
    return bottleneck("pfeiffer", part.bottleneck) if kind == "pfeiffer" else lora_arrays(part)


def fusion_arrays(model: Bert, layer: int) -> dict[str, np.ndarray]:
    found = {}
    for number, name in enumerate(NAMES):
        part = model.adapters.parts[name].blocks[layer]
        found |= bottleneck(f"fusion/adapter_{number}", part.bottleneck)
    fusion = model.adapters.fusions["one+two+three"].blocks[layer]
    found |= dense("fusion/query", fusion.query) | dense("fusion/key", fusion.key)
    return found | {"fusion/value/kernel": array(fusion.value)}


def expected_states(model: Bert, adapters: list[dict[str, np.ndarray]], **more: Any) -> Any:
    embedded = np.asarray(model.hidden_states(INPUTS)[0])
    blocks = [block_arrays(block) for block in model.layer_blocks]
    settings = reference.Settings(CONFIG["num_heads"], **more)
    return reference.adapted_encoder(embedded, blocks, settings, adapters, MASK)


def check_states(model: Bert, expected: Any) -> None:
    """All hidden states of real tokens, and the outputs in a graph of any length."""
    for found, wanted in zip(model.hidden_states(INPUTS), expected, strict=True):
        np.testing.assert_allclose(np.asarray(found)[MASK], wanted[MASK], atol=2e-5)
    specs = {name: tf.TensorSpec((None, None), one.dtype) for name, one in INPUTS.items()}
    graph = tf.function(lambda inputs: model(inputs), input_signature=[specs])
    found = graph({name: tf.constant(one) for name, one in INPUTS.items()})
    last = found["sequence_output"].numpy()
    np.testing.assert_allclose(last[MASK], expected[-1][MASK], atol=2e-5)
    plain = np.asarray(small_bert()(INPUTS)["sequence_output"])
    assert np.abs(plain - last)[MASK].max() > 0.1


@pytest.mark.parametrize("kind", CONFIGS)
def test_numbers(kind):
    model = adapted(kind)
    config = CONFIGS[kind]
    more = {"lora_alpha": config.alpha} if "lora" in kind else {}
    more |= {} if "lora" in kind else {"bottleneck_activation": config.activation}
    arrays = [adapter_arrays(kind, part) for part in model.adapters.parts["one"].blocks]
    check_states(model, expected_states(model, arrays, **more))


def test_numbers_of_a_fusion():
    model = fused()
    arrays = [fusion_arrays(model, layer) for layer in range(2)]
    check_states(model, expected_states(model, arrays, bottleneck_activation="tanh"))


def test_the_loss_keeps_values_near_the_identity():
    model = fused(regularization=0.25)
    values = [array(part.value) for part in model.adapters.fusions["one+two+three"].blocks]
    expected = reference.fusion_regularization(values, 0.25)
    np.testing.assert_allclose(float(sum(model.losses)), expected, rtol=1e-5)
    new = small_bert()
    new.add_adapter("a")
    new.add_adapter("b")
    new.add_adapter_fusion(["a", "b"])
    value = array(new.adapters.fusions["a+b"].blocks[0].value)
    np.testing.assert_allclose(value, np.eye(12) + 1e-6 * (1 - np.eye(12)), rtol=1e-6)


@pytest.mark.parametrize("kind", [kind for kind in CONFIGS if "lora" in kind])
def test_a_merged_lora_gives_the_same_numbers(kind):
    model = adapted(kind)
    wanted = np.asarray(model(INPUTS)["sequence_output"])
    count = len(model.weights)
    model.merge_adapter("one")
    assert model.adapter_names == [] and len(model.weights) < count
    np.testing.assert_allclose(model(INPUTS)["sequence_output"], wanted, atol=1e-5)
    assert all(variable.trainable for block in model.blocks for variable in block.trainable_weights)
    assert len(model.trainable_variables) == len(small_bert().trainable_variables)


@pytest.mark.parametrize("kind", ["lora everywhere", "pfeiffer"])
def test_a_lora_is_merged_for_a_while(kind):
    model = adapted(kind)
    before = [array(weight) for weight in model.weights]
    wanted = np.asarray(model(INPUTS)["sequence_output"])
    with model.merged_adapter():
        assert model.active_adapters == ([] if "lora" in kind else ["one"])
        np.testing.assert_allclose(model(INPUTS)["sequence_output"], wanted, atol=1e-5)
    assert model.active_adapters == ["one"]
    for weight, one in zip(model.weights, before):
        np.testing.assert_array_equal(array(weight), one)
    trained = len(model.trainable_variables)
    with pytest.raises(RuntimeError), model.merged_adapter():
        raise RuntimeError
    np.testing.assert_array_equal(model(INPUTS)["sequence_output"], wanted)
    assert len(model.trainable_variables) == trained


@pytest.mark.parametrize("kind", CONFIGS)
def test_an_adapter_that_is_not_active_changes_nothing(kind):
    model = adapted(kind)
    model.set_active_adapters(None)
    plain = small_bert()(INPUTS)["sequence_output"]
    np.testing.assert_array_equal(model(INPUTS)["sequence_output"], plain)


def test_a_new_adapter_is_close_to_nothing():
    plain = np.asarray(small_bert()(INPUTS)["sequence_output"])
    model = small_bert()
    for kind, far in (("houlsby", 1e-3), ("lora", 0.0)):
        model.add_adapter(kind, kind)
        if kind == "houlsby":  # its own LayerNorms begin as those of the block
            for block, part in zip(model.layer_blocks, model.adapters.parts[kind].blocks):
                for name in ("attention", "feed_forward"):
                    own = getattr(block, f"{name}_residual").layer_norm
                    np.testing.assert_array_equal(part.norms[name].gamma, own.gamma)
                    np.testing.assert_array_equal(part.norms[name].beta, own.beta)
        model.set_active_adapters(kind)
        found = np.asarray(model(INPUTS)["sequence_output"])
        assert np.abs(found - plain)[MASK].max() <= far


# Weights a layer: D 12, m, I 20, r.
COUNTS = {
    "houlsby": 2 * (2 * 12 * 5 + 5 + 12) + 4 * 12,
    "pfeiffer": 2 * 12 * 4 + 4 + 12,
    "lora": 2 * 2 * (12 + 12),
    "lora everywhere": 3 * (4 * (12 + 12) + 2 * (12 + 20)),
    "lora of keys": (12 + 12) + (12 + 20),
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_adapter_alone_trains(kind):
    model = adapted(kind)
    body = {id(v) for layer in (model.embeddings, *model.blocks) for v in layer.variables}
    trained = [v for v in model.trainable_variables if "pooler" not in v.path]
    assert not body & {id(v) for v in trained}
    assert sum(int(np.prod(v.shape)) for v in trained) == 2 * COUNTS[kind]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(INPUTS, training=True)["sequence_output"] ** 3)
    found = tape.gradient(loss, [v.value for v in trained])
    assert all(g is not None and float(tf.reduce_max(tf.abs(g))) > 0 for g in found)
    model.train_encoder()
    assert body & {id(v) for v in model.trainable_variables}
    model.trainable = False
    assert not model.trainable_variables


def test_a_fusion_trains_without_its_adapters():
    model = fused()
    trained = {id(v) for v in model.trainable_variables if "pooler" not in v.path}
    fusion = model.adapters.fusions["one+two+three"].blocks
    assert trained == {id(v) for part in fusion for v in part.variables}
    # 3 D^2 + 2 D a layer, for any number of adapters.
    assert sum(int(np.prod(v.shape)) for part in fusion for v in part.weights) == 2 * (3 * 144 + 24)


def trained_adapters(model: Bert) -> set[str]:
    paths = [variable.path.split("/") for variable in model.trainable_variables]
    return {path[2] for path in paths if path[1] == "adapters"}


def test_another_adapter_trains_in_turn():
    model = adapted("pfeiffer")
    model.add_adapter("two", CONFIGS["lora"])
    assert trained_adapters(model) == {"one"}
    model.train_adapter("two")
    assert trained_adapters(model) == {"two"}
    assert model.adapter_names == ["one", "two"] and model.active_adapters == ["two"]
    model.delete_adapter("one")
    assert model.adapter_names == ["two"]
    assert not [v for v in model.weights if "/one/" in v.path]


def test_recomputed_blocks_have_the_same_gradients():
    found = []
    for recompute in (False, True):
        quiet = {"dropout": 0.0, "attention_dropout": 0.0}
        model = adapted("lora everywhere", gradient_checkpointing=recompute, **quiet)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(INPUTS, training=True)["sequence_output"] ** 2)
        first = model.adapters.parts["one"].blocks[0].low_rank["qkv"]
        found.append(tape.gradient(loss, first.down.value))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [*CONFIGS, "fusion"])
def test_files(kind, tmp_path):
    model = fused() if kind == "fusion" else adapted(kind)
    wanted = np.asarray(model(INPUTS)["sequence_output"])
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    np.testing.assert_array_equal(again(INPUTS)["sequence_output"], wanted)
    folder = write_checkpoint(model.to_checkpoint(), tmp_path / "folder", "kbert")
    for read in (Bert.from_pretrained(folder), encoder_of(read_checkpoint(folder))):
        assert type(read) is Bert and read.get_config() == model.get_config()
        np.testing.assert_array_equal(read(INPUTS)["sequence_output"], wanted)
        assert len(read.trainable_variables) == len(model.trainable_variables)
    with pytest.raises(ValueError, match='`format` must be "kbert" for an encoder with adapters'):
        model.save_pretrained(tmp_path / "other", format="huggingface")


@pytest.mark.parametrize("kind", CONFIGS)
def test_an_adapter_alone_in_a_folder(kind, tmp_path):
    model = adapted(kind)
    folder = model.save_adapter(tmp_path / "one", "one")
    assert {file.name for file in folder.iterdir()} == {
        *("kbert_adapter.json", "adapter.safetensors", "README.md"),
    }
    other = small_bert()
    assert other.load_adapter(folder) == "one"
    assert other.load_adapter(folder, name="again") == "again"
    assert other.active_adapters == [] and other.adapter_names == ["one", "again"]
    wanted = model(INPUTS)["sequence_output"]
    for name in other.adapter_names:
        other.set_active_adapters(name)
        np.testing.assert_array_equal(other(INPUTS)["sequence_output"], wanted)
    with pytest.raises(ValueError, match="`name` must be new: there is an adapter 'one' already"):
        other.load_adapter(folder)
    with pytest.raises(FileExistsError):
        model.save_adapter(folder, "one")
    model.save_adapter(folder, "one", overwrite=True)


def test_an_adapter_of_a_model_in_a_folder(tmp_path):
    model = adapted("lora")
    folder = model.save_pretrained(tmp_path / "model")
    other = small_bert()
    assert other.load_adapter(folder, "its") == "its"
    other.set_active_adapters("its")
    wanted = model(INPUTS)["sequence_output"]
    np.testing.assert_array_equal(other(INPUTS)["sequence_output"], wanted)
    assert small_bert(dtype="bfloat16").load_adapter(folder) == "one"  # the same weights, rounded
    with pytest.raises(ValueError, match="trained in this encoder. .* differs in [0-9]+ weights"):
        Bert(**CONFIG).load_adapter(folder)
    plain = small_bert().save_pretrained(tmp_path / "plain")
    with pytest.raises(ValueError, match="must hold one active adapter. Received: none"):
        other.load_adapter(plain)


def test_folders_that_do_not_fit(tmp_path):
    folder = adapted("pfeiffer").save_adapter(tmp_path / "one", "one")
    wider = Bert(**{**CONFIG, "hidden_dim": 15})
    with pytest.raises(ValueError, match="adapter for .*: 15, .* one for .*'hidden_dim': 12"):
        wider.load_adapter(folder)
    file = folder / "kbert_adapter.json"
    about = json.loads(file.read_text())
    file.write_text(json.dumps({**about, "config": {**about["config"], "adapter_dim": 3}}))
    model = small_bert()
    with pytest.raises(ValueError, match="of another shape: .'layer_0/bottleneck/down/kernel'"):
        model.load_adapter(folder)
    assert model.adapter_names == []
    file.write_text(json.dumps({**about, "format_version": 9}))
    with pytest.raises(ValueError, match="must have `format_version` 2, .*format_version=9"):
        model.load_adapter(folder)
    with pytest.raises(FileNotFoundError):
        model.load_adapter(tmp_path / "none")


def test_layers_that_share_a_block_have_their_own_adapters():
    keras.utils.set_random_seed(1)
    model = Albert(23, 12, 3, 3, 20, 6, initializer_range=0.3)
    model.add_adapter("one", CONFIGS["lora"])
    draw_weights(model.adapters.parts["one"].blocks)
    plain = np.asarray(model(INPUTS)["sequence_output"])
    model.train_adapter("one")
    assert len(model.adapters.parts["one"].blocks) == 3
    assert np.abs(np.asarray(model(INPUTS)["sequence_output"]) - plain)[MASK].max() > 0.01
    with pytest.raises(ValueError, match="`name` must be of an encoder with a block for each la"):
        model.merge_adapter("one")


def rejected(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_errors():
    model = adapted("pfeiffer")
    model.add_adapter("two", "lora")
    rejected(lambda: model.add_adapter("one"), "`name` must be new: there is an adapter 'one' alre")
    rejected(lambda: model.add_adapter("a b"), "`name` must be a word without .* Received: 'a b'")
    rejected(lambda: model.add_adapter("x", "prefix"), "`config` must be one of houlsby, pfeiffer")
    wrong = {"kind": "lora", "dim": 3}
    rejected(lambda: model.add_adapter("x", wrong), "`config` of lora must have no other keys than")
    targets = LoraConfig(targets=("queries",))
    rejected(lambda: model.add_adapter("x", targets), "`targets` must be some of query, .*queries")
    rejected(lambda: model.add_adapter("x", LoraConfig(rank=0)), "`rank` must be an integer of at")
    rejected(lambda: model.add_adapter("x", PfeifferConfig(0)), "`adapter_dim` must be an integer")
    rejected(lambda: model.train_adapter("x"), "must be adapters that are there: one, two.*'x'")
    rejected(lambda: model.train_adapter([]), "`names` must hold one adapter or more. Received: ..")
    rejected(lambda: model.set_active_adapters(["one", "two"]), "or those of a fusion: none. Rece")
    rejected(lambda: model.add_adapter_fusion(["one"]), "must be two adapters or more. Received")
    rejected(lambda: model.add_adapter_fusion(["one", "one"]), "`names` must be different adapters")
    rejected(lambda: model.add_adapter_fusion(["one", "two"]), "must be Pfeiffer adapters, .*: two")
    rejected(lambda: model.delete_adapter("one"), "`name` must not be that of an active adapter")
    rejected(lambda: model.merge_adapter("one"), "active LoRA adapter. .* a PfeifferC")
    assert model.adapter_names == ["one", "two"]
