import json

import keras
import numpy as np
import pytest

from kbert.checkpoints.adapter_folder import read_adapters, write_adapters
from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.models.bert import Bert
from tests.small_bert import small_bert

INPUTS = {"token_ids": np.array([[2, 5, 6, 3]])}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return small_bert().save_pretrained(tmp_path_factory.mktemp("base") / "base")


@pytest.fixture
def trained(base):
    keras.utils.set_random_seed(1)
    model = Bert.from_pretrained(base, adapter={"kind": "houlsby", "adapter_dim": 3})
    draw = np.random.default_rng(1)
    for variable in model.trainable_variables:
        # Whole sixteenths: float16 holds them exactly.
        variable.assign(np.round(draw.normal(size=variable.shape) * 16) / 16)
    return model


def test_only_what_was_added_is_written_and_the_same_model_comes_back(trained, base, tmp_path):
    path = tmp_path / "adapters"
    write_adapters(trained.to_checkpoint(), read_checkpoint(base), str(base), path)
    from safetensors.numpy import load_file

    written = load_file(path / "adapters.safetensors")
    names = {name.removeprefix("arrays/") for name in written}
    assert names == {v.path.removeprefix("bert/") for v in trained.trainable_variables}
    assert {str(array.dtype) for array in written.values()} == {"float16"}
    again = Bert.from_checkpoint(read_checkpoint(path))
    assert again.get_config() == trained.get_config()
    np.testing.assert_array_equal(
        again(INPUTS)["sequence_output"], trained(INPUTS)["sequence_output"]
    )


def test_dropout_is_the_trainings_own(trained, base, tmp_path):
    other = read_checkpoint(base)
    other.config = {**other.config, "dropout": 0.2, "attention_dropout": 0.0}
    path = write_adapters(trained.to_checkpoint(), other, str(base), tmp_path / "a")
    assert read_checkpoint(path).config["dropout"] == read_checkpoint(base).config["dropout"]


def test_the_casing_is_the_trainings_own(trained, base, tmp_path):
    checkpoint = trained.to_checkpoint()
    for cased in (True, False):
        checkpoint.lowercase = cased
        write_adapters(checkpoint, read_checkpoint(base), str(base), tmp_path / str(cased))
        assert read_checkpoint(tmp_path / str(cased)).lowercase is cased


def test_a_number_too_large_for_the_dtype(trained, base, tmp_path):
    checkpoint, whole = trained.to_checkpoint(), read_checkpoint(base)
    name = next(iter(checkpoint.adapters))
    checkpoint.adapters[name] = checkpoint.adapters[name].copy()
    checkpoint.adapters[name].flat[0] = 1e6
    with pytest.raises(ValueError, match=f"Received: float16 for {name}, .* number is 1e\\+06"):
        write_adapters(checkpoint, whole, str(base), tmp_path / "a")
    write_adapters(checkpoint, whole, str(base), tmp_path / "a", "float32")
    assert read_checkpoint(tmp_path / "a").adapters[name].flat[0] == 1e6


def test_a_base_of_another_size(trained, base, tmp_path):
    other = read_checkpoint(base)
    other.config = {**other.config, "num_heads": 1}
    wanted = "the configuration of `base`. Different: num_heads"
    with pytest.raises(ValueError, match=wanted):
        write_adapters(trained.to_checkpoint(), other, "x", tmp_path / "a")


def test_an_unknown_dtype(trained, base, tmp_path):
    with pytest.raises(ValueError, match="`dtype` must be one of float16, float32. Received: dt"):
        write_adapters(trained.to_checkpoint(), read_checkpoint(base), "x", tmp_path / "a", "int8")


def test_a_newer_version_and_a_missing_base(trained, base, tmp_path):
    path = tmp_path / "adapters"
    write_adapters(trained.to_checkpoint(), read_checkpoint(base), "no-such-encoder", path)
    message = "^adapters is adapters on no-such-encoder, which is read with them. .*must be a path"
    with pytest.raises(FileNotFoundError, match=message):
        read_checkpoint(path)
    about = json.loads((path / "kbert_adapters.json").read_text())
    (path / "kbert_adapters.json").write_text(json.dumps({**about, "format_version": 3}))
    with pytest.raises(ValueError, match="must have `format_version` 2 and a `base`. Received: fo"):
        read_adapters(path, read_checkpoint)


def test_the_architecture_is_that_of_the_base(trained, base, tmp_path):
    checkpoint, other = trained.to_checkpoint(), read_checkpoint(base)
    path = write_adapters(checkpoint, other, str(base), tmp_path / "adapters")
    file = path / "kbert_adapters.json"
    about = json.loads(file.read_text())
    assert about.pop("architecture") == "bert"
    file.write_text(json.dumps(about))  # as folders were written before
    assert read_checkpoint(path).architecture == "bert"
    file.write_text(json.dumps({**about, "architecture": "gpt"}))
    with pytest.raises(ValueError, match="must be that of .*, bert. Received: architecture='gpt'"):
        read_checkpoint(path)
    other.architecture = "gpt"
    with pytest.raises(ValueError, match="configuration of `base`. Different: architecture"):
        write_adapters(checkpoint, other, str(base), tmp_path / "other")


def test_a_base_without_a_pooler(trained, base, tmp_path):
    bare = read_checkpoint(base)
    bare.arrays = {n: a for n, a in bare.arrays.items() if not n.startswith("pooler/")}
    path = write_adapters(trained.to_checkpoint(), bare, "bare", tmp_path / "a")
    again = read_adapters(path, lambda name: bare)
    np.testing.assert_array_equal(again.arrays["pooler/kernel"], trained.pooler.kernel)
