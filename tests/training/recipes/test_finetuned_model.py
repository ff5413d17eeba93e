import json
from dataclasses import replace

import keras
import numpy as np
import pytest
from safetensors.numpy import save_file

from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.layers.adapters.configs import HoulsbyConfig, LoraConfig, PfeifferConfig
from kbert.models.bert import Bert
from kbert.models.distilbert import DistilBert
from kbert.models.encoder import encoder_of
from kbert.tasks.classification.model import Classifier
from kbert.training.recipes.finetuned_model import build_model, compile_model
from kbert.training.recipes.finetuning import read_run_data
from tests.training.tiny_runs import TOKENS


def build(config):
    data = read_run_data(config)
    return build_model(config, data), data


def test_a_pretrained_encoder_keeps_its_weights(tiny, tmp_path):
    one, _ = build(tiny.config(tmp_path / "o", head="two_layer", dropout=0.3))
    two, _ = build(tiny.config(tmp_path / "o", gradient_checkpointing=True))
    assert (one.head, one.dropout, one.max_sequence_length) == ("two_layer", 0.3, 16)
    assert one.labels == ["down", "up"] and one.pair is False
    assert two.encoder.gradient_checkpointing
    for a, b in zip(one.encoder.weights, two.encoder.weights):
        np.testing.assert_array_equal(a, b)


def test_the_encoder_of_a_model_of_another_task(tiny, tmp_path, caplog):
    reader, _ = build(tiny.reading(tmp_path / "o", "question-answering", tiny.questions))
    folder = reader.save_pretrained(tmp_path / "reader")
    model, _ = build(tiny.config(tmp_path / "o", encoder=str(folder)))
    for one, same in zip(reader.encoder.weights, model.encoder.weights):
        np.testing.assert_array_equal(one, same)
    assert f"{folder} is a QuestionAnswerer: its encoder is taken" in caplog.text


def test_random_weights_of_a_published_size(tiny, tmp_path):
    values = {"encoder": "scratch:tiny", "vocabulary": str(tiny.vocabulary), "lowercase": False}
    model, _ = build(tiny.config(tmp_path / "o", **values))
    # Turc et al. 2019: tiny has 2 layers of width 128.
    assert (model.encoder.num_layers, model.encoder.hidden_dim) == (2, 128)
    assert model.encoder.vocabulary_size == len(TOKENS)
    assert model.tokenizer.lowercase is False


def test_random_weights_of_an_encoder_as_one_is(tiny, tmp_path):
    config = tiny.config(tmp_path / "o", encoder=f"scratch:{tiny.encoder}", encoder_dropout=0.3)
    keras.utils.set_random_seed(99)
    model, _ = build(config)
    known = Bert.from_pretrained(tiny.encoder, dropout=0.3, attention_dropout=0.3)
    assert model.encoder.get_config() == {**known.get_config(), "name": model.encoder.name}
    assert list(model.tokenizer.vocabulary.tokens) == TOKENS
    for one, other in zip(model.encoder.weights, known.weights):
        if one.path.endswith("kernel"):
            assert np.abs(one.numpy() - other.numpy()).max() > 0.1


@pytest.mark.parametrize("vocabulary", [False, True])
def test_the_encoder_keeps_its_dropout_or_gets_another(tiny, tmp_path, vocabulary):
    given = {"vocabulary": str(tiny.vocabulary)} if vocabulary else {}
    config = tiny.config(tmp_path / "o", dropout=0.3, **given)
    own, _ = build(config)
    other, _ = build(replace(config, encoder_dropout=0.25))
    assert (own.dropout, own.encoder.dropout, own.encoder.attention_dropout) == (0.3, 0.1, 0.1)
    encoder = other.encoder
    assert (other.dropout, encoder.dropout, encoder.attention_dropout) == (0.3, 0.25, 0.25)


def test_an_encoder_of_random_weights_gets_the_dropout(tiny, tmp_path):
    values = {"encoder": "scratch:tiny", "vocabulary": str(tiny.vocabulary)}
    config = tiny.config(tmp_path / "o", **values)
    assert build(config)[0].encoder.dropout == 0.1  # Devlin et al. 2019
    none, _ = build(replace(config, encoder_dropout=0.0))
    assert (none.encoder.dropout, none.encoder.attention_dropout) == (0, 0)


def test_the_precision_reaches_the_encoder(tiny, tmp_path):
    model, _ = build(tiny.config(tmp_path / "o", precision="mixed_bfloat16"))
    assert model.dtype_policy.name == model.encoder.dtype_policy.name == "mixed_bfloat16"


def test_a_vocabulary_or_length_that_does_not_fit_is_refused(tiny, tmp_path):
    larger = tmp_path / "larger.txt"
    larger.write_text("".join(f"{token}\n" for token in [*TOKENS, "extra"]), encoding="utf-8")
    with pytest.raises(ValueError, match="`tokenizer` must not have more tokens than"):
        build(tiny.config(tmp_path / "o", vocabulary=str(larger)))
    with pytest.raises(ValueError, match=r"`max_sequence_length` must be a whole .* in \[3, 24\]"):
        build(tiny.config(tmp_path / "o", max_sequence_length=25))
    with pytest.raises(FileNotFoundError, match="Received: 'all-MiniLM-L6-v9'. Did you mean"):
        build(tiny.config(tmp_path / "o", encoder="all-MiniLM-L6-v9"))


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"adapter": "houlsby", "adapter_dim": 3}, HoulsbyConfig(3)),
        ({"adapter": "pfeiffer"}, PfeifferConfig()),
        ({"adapter": "lora", "lora_rank": 2}, LoraConfig(2, 2.0)),
        (
            {"adapter": "lora", "lora_alpha": 4.0, "lora_targets": ["key", "output"]},
            LoraConfig(8, 4.0, ("key", "output")),
        ),
    ],
)
def test_an_adapter_of_a_run(tiny, tmp_path, options, expected):
    model, _ = build(tiny.config(tmp_path / "o", **options))
    encoder = model.encoder
    assert encoder.adapters.configs == {"task": expected} and encoder.active_adapters == ["task"]
    parts = {variable.path.split("/")[1] for variable in model.trainable_variables}
    assert parts == {"adapters", "pooler", "sequence_head"}


@pytest.mark.parametrize(
    "task, name, old, new",
    [("question-answering", "null_threshold", -3.5, None), ("span-tagging", "outside_bias", -2, 0)],
)
def test_a_threshold_of_before_is_not_that_of_what_comes(tiny, tmp_path, task, name, old, new):
    model, _ = build(tiny.reading(tmp_path / "o", task, tiny.questions))
    setattr(model, name, old)
    saved = str(model.save_pretrained(tmp_path / "saved"))
    again, _ = build(tiny.reading(tmp_path / "o", task, tiny.questions, encoder=saved))
    assert getattr(again, name) == new


def test_the_optimizer_is_the_one_of_the_configuration(tiny, tmp_path):
    config = tiny.config(tmp_path / "o", warmup_fraction=0.25, clip=0.5, weight_decay=0.1)
    model, data = build(config)
    compile_model(model, config, data, total_steps=10)
    rate = model.optimizer._learning_rate
    assert (rate.peak, rate.total_steps, rate.warmup_steps) == (0.01, 10, 2)
    assert (model.optimizer.decay, model.optimizer.global_clipnorm) == (0.1, 0.5)
    balanced = tiny.config(tmp_path / "o", class_weights={"up": 3.0, "down": 1.0})
    compile_model(model, balanced, data, total_steps=10)
    assert model.loss.class_weights == [1.0, 3.0]  # in the order of the labels


def test_an_encoder_that_was_published_with_another_head(tiny, tmp_path):
    encoder = DistilBert(len(TOKENS), 16, 1, 2, 32, max_sequence_length=24)
    folder = encoder.save_pretrained(tmp_path / "encoder", vocabulary=tiny.vocabulary)
    model, _ = build(tiny.config(tmp_path / "o", encoder=str(folder)))
    assert type(model.encoder) is DistilBert and model.head == "two_layer"
    more = {"encoder": str(folder), "encoder_dropout": 0.0, "gradient_checkpointing": True}
    reading = tiny.reading(tmp_path / "o", "question-answering", tiny.questions)
    reader, _ = build(replace(reading, adapter="houlsby", **more))
    assert type(reader.encoder) is DistilBert and reader.encoder.dropout == 0.0
    assert reader.encoder.active_adapters == ["task"]


@pytest.fixture(scope="module")
def adapters(tiny, tmp_path_factory):
    """Two models with a Pfeiffer adapter each, on the same encoder; one as an adapter alone."""
    folder = tmp_path_factory.mktemp("adapters")
    for name in ("one", "two"):
        model, _ = build(tiny.config(folder / "o", adapter="pfeiffer", adapter_dim=2))
        model.save_pretrained(folder / name)
        model.encoder.save_adapter(folder / f"{name}-alone", "task")
    return folder


def test_a_fusion_of_the_adapters_of_runs(tiny, adapters, tmp_path):
    folders = [str(adapters / "one"), str(adapters / "two-alone")]
    config = tiny.config(tmp_path / "o", fuse=folders, learning_rate=None)
    model, _ = build(config)
    encoder = model.encoder
    assert encoder.active_adapters == ["one", "two-alone"] and config.peak_rate == 5e-5
    saved = encoder_of(read_checkpoint(adapters / "one")).adapters.parts["task"].weights
    for one, two in zip(encoder.adapters.parts["one"].weights, saved, strict=True):
        np.testing.assert_array_equal(one, two)
    own = {v.path for v in model.trainable_variables if "/adapters/" in v.path}
    assert own and all("/fusion_one+two-alone/" in path for path in own)
    again = Classifier.from_pretrained(model.save_pretrained(tmp_path / "fused"))
    assert again.encoder.active_adapters == ["one", "two-alone"]
    texts = ["the film was good", "it was dull"]
    np.testing.assert_allclose(again.predict(texts), model.predict(texts), atol=1e-6)


def test_a_fusion_of_adapters_of_adapterhub(tiny, adapters, tmp_path):
    plain = encoder_of(read_checkpoint(tiny.encoder))
    width, shapes = plain.hidden_dim, {}
    for i in range(plain.num_layers):
        module = f"bert.encoder.layer.{i}.output.adapters.sst-2"
        shapes |= {f"{module}.adapter_down.0.weight": (4, width)}
        shapes |= {f"{module}.adapter_down.0.bias": (4,), f"{module}.adapter_up.bias": (width,)}
        shapes |= {f"{module}.adapter_up.weight": (width, 4)}
    draw = np.random.default_rng(1)
    arrays = {name: draw.normal(size=shape).astype("float32") for name, shape in shapes.items()}
    config = {"mh_adapter": False, "output_adapter": True, "original_ln_before": True}
    config |= {"non_linearity": "relu", "reduction_factor": width / 4}
    about = {"name": "sst-2", "model_type": "bert", "hidden_size": width, "config": config}
    folder = tmp_path / "their"
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({**about, "version": "adapters.1.3.0"}))
    save_file(arrays, folder / "adapter.safetensors")
    fuse = [str(folder), str(adapters / "two-alone")]
    model, _ = build(tiny.config(tmp_path / "o", fuse=fuse))
    assert model.encoder.active_adapters == ["their", "two-alone"]
    kernel = model.encoder.adapters.variables_of("their")["layer_0/bottleneck/down/kernel"]
    name = "bert.encoder.layer.0.output.adapters.sst-2.adapter_down.0.weight"
    np.testing.assert_array_equal(kernel, arrays[name].T)


def test_a_fusion_of_adapters_of_another_encoder(tiny, adapters, tmp_path):
    other = Bert(len(TOKENS), 16, 1, 2, 32, max_sequence_length=24)
    folder = other.save_pretrained(tmp_path / "encoder", vocabulary=tiny.vocabulary)
    fuse = [str(adapters / "one"), str(adapters / "two")]
    message = "`fuse`: `.*one` must hold .* trained in this encoder. .* differs in [0-9]+ weights"
    with pytest.raises(ValueError, match=message):
        build(tiny.config(tmp_path / "o", encoder=str(folder), fuse=fuse))
