from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from kbert.models.captioning.image_transformer import ImageTransformer
from kbert.models.captioning.show_attend_tell import ShowAttendTell
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.training.captioning.model import build_captioner, build_extractor, compile_captioner
from tests.small_captioner import SIZE, small_subwords
from tests.training.tiny_captions import TinyCaptions


def test_sizes_and_settings_reach_the_model(tiny_captions: TinyCaptions, tmp_path: Path):
    values = {"embedding_dim": 6, "attention_dim": 5, "attention": "hard", "dropout": 0.2}
    settings = {
        **{"beam_size": 3, "length_penalty": "gnmt", "alpha": 0.5, "nbest": 2, "max_length": 7},
        **{"image_fit": "crop", "label_smoothing": 0.1, "attention_penalty": 0.3},
        **{"feature_dropout": 0.2},
    }
    config = tiny_captions.config(tmp_path, **values, **settings, train_network=True)
    model = build_captioner(config, small_subwords())
    inner = model.decoder
    assert type(inner) is ShowAttendTell
    assert {name: getattr(inner, name) for name in values} == values
    assert (inner.hidden_dim, inner.max_sequence_length, inner.feature_dim) == (8, 12, 6)
    assert inner.vocabulary_size == len(small_subwords()) and inner.gated
    assert {name: getattr(model, name) for name in settings} == settings
    assert model.train_extractor and model.extractor.trainable


@pytest.mark.slow
def test_the_other_architecture(tiny_captions: TinyCaptions, tmp_path: Path):
    values = {"num_encoder_layers": 1, "num_decoder_layers": 2, "num_heads": 2}
    config = tiny_captions.config(
        tmp_path, architecture="image-transformer", precision="mixed_bfloat16", **values
    )
    model = build_captioner(config, small_subwords())
    assert type(model.decoder) is ImageTransformer
    assert {name: getattr(model.decoder, name) for name in values} == values
    assert (model.decoder.num_places, model.decoder.intermediate_dim) == (16, 1024)
    assert model.decoder.compute_dtype == "bfloat16"
    assert model.extractor.compute_dtype == "float32" and not model.extractor.trainable


def test_a_network_of_a_file(tiny_captions: TinyCaptions, tmp_path: Path):
    extractor = build_extractor(tiny_captions.config(tmp_path, preprocessing="torch"))
    assert extractor.preprocessing == "torch" and extractor.image_size == (SIZE, SIZE)
    known = keras.saving.load_model(tiny_captions.network).get_layer("second").kernel
    np.testing.assert_array_equal(extractor.network.get_layer("second").kernel, known)
    first = build_extractor(tiny_captions.config(tmp_path, network_layer="first"))
    assert (first.map_shape, first.feature_dim) == ((8, 8), 8)


def test_a_network_of_keras(tiny_captions: TinyCaptions, tmp_path: Path):
    values = {"network": "MobileNet", "network_weights": "none", "image_size": 32}
    config = tiny_captions.config(tmp_path, network_layer="conv_pw_1_relu", **values)
    extractor = build_extractor(config)
    assert extractor.preprocessing == "tf" and extractor.image_size == (32, 32)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"network_layer": "third"}, "fit each other. `layer` must be a layer of .*first, second"),
        ({"network": "NoNet"}, "fit each other. `name` must be a network of keras.applications"),
    ],
)
def test_a_network_that_does_not_fit(
    values: dict[str, Any], message: str, tiny_captions: TinyCaptions, tmp_path: Path
):
    with pytest.raises(ValueError, match=f"`network` and `network_layer` must {message}"):
        build_extractor(tiny_captions.config(tmp_path, **values))


def test_the_optimizer(tiny_captions: TinyCaptions, tmp_path: Path):
    config = tiny_captions.config(tmp_path, warmup_share=0.1, weight_decay=0.02, clip=3.0)
    model = build_captioner(config, small_subwords())
    compile_captioner(model, config, 40)
    optimizer = model.optimizer
    assert optimizer.global_clipnorm == 3.0
    rate = WarmupLinearDecay(**optimizer.get_config()["learning_rate"]["config"])
    # It rises in 4 updates of 40, and then falls to 0.
    known = WarmupLinearDecay(0.02, 40, 4)
    assert [float(rate(step)) for step in range(40)] == [float(known(step)) for step in range(40)]
    assert max(float(rate(step)) for step in range(40)) == pytest.approx(0.02, rel=0.05)
    assert optimizer.get_config()["weight_decay"] == 0.02
