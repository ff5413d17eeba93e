import dataclasses
from typing import Any

import pytest

from kbert.architectures import CAPTIONERS
from kbert.decoding.scores import LENGTH_PENALTIES
from kbert.images.resizing import check_size
from kbert.models.captioning.feature_extractor import PREPROCESSING
from kbert.models.captioning.show_attend_tell import ATTENTIONS
from kbert.text.subword_training import MODEL_TYPES, NORMALIZATIONS
from kbert.training.config.captioning_config import (
    ARCHITECTURE_OPTIONS,
    MONITORED,
    SEARCHED,
    CaptioningConfig,
)

LEAST = {"train": "a.csv", "images": "i", "output": "o"}


def config(**values: Any) -> CaptioningConfig:
    return CaptioningConfig.from_dict({**LEAST, **values})


def test_it_goes_to_a_dict_and_back():
    made = config(validation="v.csv", monitor="bleu_4", attention="hard", image_column=0)
    assert CaptioningConfig.from_dict(made.to_dict()) == made
    assert made.split_sizes is None
    assert config(split="600, 100,20").split_sizes == [600, 100, 20]


def test_the_words_are_those_of_the_rooms_below():
    """They are written a second time, since those rooms load Keras, and --help must not."""
    accepts = {f.name: f.metadata["kind"].accepts for f in dataclasses.fields(CaptioningConfig)}
    for key, words in (
        ("subword_type", MODEL_TYPES),
        ("normalization", NORMALIZATIONS),
        ("length_penalty", LENGTH_PENALTIES),
        ("preprocessing", PREPROCESSING),
        ("attention", ATTENTIONS),
        ("image_fit", ("squeeze", "crop")),
        ("monitor", MONITORED),
    ):
        assert all(map(accepts[key], words)), key
        assert not accepts[key]("other")
    for fit in ("squeeze", "crop"):
        check_size(4, 4, fit)
    assert set(ARCHITECTURE_OPTIONS) <= set(CAPTIONERS) and set(SEARCHED) < set(MONITORED)


def test_every_field_says_what_it_is_for():
    panels = ("Data", "Images", "Subwords", "Model", "Training", "Search", "Run")
    for field in dataclasses.fields(CaptioningConfig):
        assert field.metadata["help"].endswith("."), field.name
        assert field.metadata["panel"] in panels, field.name


@pytest.mark.parametrize(
    "values, message",
    [
        ({"train": None}, "`train` must be given. Received: train=None"),
        ({"images": None}, "`images` must be given. Received: images=None"),
        ({"split": "3,4"}, "`split` must be three numbers of images, such as 6000,1000,1000"),
        ({"split": "3,4,-5"}, "`split` must be three numbers of images"),
        ({"split": "3,0,5"}, "`split` must be numbers of at least 1. Received: split='3,0,5'"),
        (
            {"split": "3,4,5", "validation": "v.csv"},
            "`validation` must be left out with split. Received: validation='v.csv'",
        ),
        ({"split": "3,4,5", "test": "t.csv"}, "`test` must be left out with split"),
        ({"monitor": "chrf"}, "`monitor` must be left out where there is no validation"),
        ({"early_stopping": 2}, "`early_stopping` must be left out where there is no validation"),
        ({"monitor": "bleu"}, "`monitor` must be one of loss, perplexity, accuracy, bleu_4, chrf"),
        ({"architecture": "lstm"}, "`architecture` must be one of show-attend-tell, image-trans"),
        ({"num_heads": 4}, "`num_heads` must be left out with architecture=show-attend-tell"),
        (
            {"architecture": "image-transformer", "attention": "soft"},
            "`attention` must be left out with architecture=image-transformer",
        ),
        ({"attention": "sharp"}, "`attention` must be one of soft, hard, mean"),
        ({"network": "a.keras", "image_size": 96}, "`image_size` must be left out with a .keras f"),
        ({"network": "a.keras", "network_weights": "none"}, "`network_weights` must be left out"),
        ({"preprocessing": "tf"}, "`preprocessing` must be left out with a network of keras.appl"),
        ({"subwords": "a.model", "vocabulary_size": 60}, "`vocabulary_size` must be left out wit"),
        (
            {"features": "f", "train_network": True},
            "`features` must be left out with train_network: they change. Received: features='f'",
        ),
        ({"nbest": 6}, "`nbest` must be at most beam_size=5. Received: nbest=6"),
        (
            {"max_length": 30, "max_sequence_length": 20},
            "`max_length` must be at most max_sequence_length=20. Received: max_length=30",
        ),
        ({"learning_rate": 0}, "`learning_rate` must be a number above 0"),
        ({"attention_penalty": -1}, "`attention_penalty` must be a number, at least 0"),
        ({"image_size": 8}, "`image_size` must be a whole number, at least 16"),
        ({"num_encoder_layers": -1}, "`num_encoder_layers` must be"),
        ({"beam-size": 3}, "Received: 'beam-size'. Did you mean `beam_size`"),
        ({"task": "translation"}, "`task` must be one of captioning"),
    ],
)
def test_what_cannot_be_is_refused_by_name(values: dict[str, Any], message: str):
    with pytest.raises(ValueError) as raised:
        config(**values)
    assert message in str(raised.value)


def test_what_may_be():
    config(split="3,4,5", monitor="bleu_4", early_stopping=1)
    config(network="a.keras", preprocessing="torch")
    config(network="ResNet50", image_size=96, network_weights="none")
    config(architecture="image-transformer", num_encoder_layers=0, num_heads=8)
    config(train_network=True)
