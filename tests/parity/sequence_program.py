"""Computes what writes a sequence, translators and captioners, on whatever backend Keras runs."""

from typing import Any

import keras
import numpy as np

from kbert.models.captioning.feature_extractor import FeatureExtractor
from kbert.models.captioning.image_transformer import ImageTransformer
from kbert.models.captioning.show_attend_tell import ShowAttendTell
from kbert.models.encoder_decoders.bahdanau import Bahdanau
from kbert.models.encoder_decoders.convs2s import ConvS2S
from kbert.models.encoder_decoders.rnn import RnnEncoderDecoder
from kbert.optimization.adamw import AdamW
from kbert.tasks.captioning.head import Captioning
from kbert.tasks.translation.head import Translation
from tests.parity.inputs import PADDING, TOKENS, B, D, T, draw, with_weights


def translation_models(dtype: str = "float32") -> dict[str, Any]:
    """Encoder-decoders that are no Transformers."""
    given: dict[str, Any] = {"vocabulary_size": 11, "hidden_dim": D, "dropout": 0.0, "dtype": dtype}
    made = {
        "rnn": RnnEncoderDecoder(**given, reversed_source=True),
        "lstm": RnnEncoderDecoder(**given, cell="lstm", context="initial", num_layers=2),
        "bahdanau": Bahdanau(**given, encoder_dim=5),
        "bilinear": Bahdanau(**given, cell="gru_reset_after", score="bilinear"),
        "convs2s": ConvS2S(**given, num_encoder_layers=2, num_decoder_layers=2),
    }
    return {name: with_weights(model) for name, model in made.items()}


TRANSLATED = {
    "source_token_ids": TOKENS,
    "source_padding_mask": PADDING,
    "target_token_ids": TOKENS[::-1],
}


def one_step(model: Any, memory: Any) -> Any:
    """Returns the logits after one token, where two hypotheses have room."""
    state, slots = model.start_decoding(memory, 2), np.zeros((B, 1, 1), "int32")
    return model.decode_step(TOKENS[:, :1], 0, slots, state)[0]


def translation_outputs() -> dict[str, Any]:
    """Logits of a known target, a step of decoding and the attention, in float32."""
    found = {}
    for name, model in translation_models().items():
        memory = model.encode(TRANSLATED)
        found |= {f"{name}/logits": model(TRANSLATED), f"{name}/step": one_step(model, memory)}
        for layer, scores in enumerate(model.memory_scores(TOKENS, memory)):
            found[f"{name}/scores_{layer}"] = scores
    return found


def training_to_translate(dtype: str = "float32") -> dict[str, np.ndarray]:
    """The losses of some steps of each model."""
    found = {}
    for name, model in translation_models(dtype).items():
        task = Translation(model, dtype=dtype)
        task.compile(AdamW(0.01, weight_decay=0.0))
        given = {"batch_size": 3, "epochs": 4, "shuffle": False, "verbose": 0}
        targets = np.where(PADDING, TOKENS, -1)
        history = task.fit(TRANSLATED, targets, **given).history
        found[f"losses_of_{name}"] = np.array(history["loss"])
    return found


PLACES, CHANNELS, SIDE = 4, 6, 8
PIXELS = draw.uniform(0.0, 255.0, (B, SIDE, SIDE, 3)).astype("float32")
FEATURES = draw.normal(size=(B, PLACES, CHANNELS)).astype("float32")
CHOSEN = np.eye(PLACES, dtype="float32")[draw.integers(0, PLACES, (B, T))]
NEXT = np.where(PADDING, TOKENS, -1)


def caption_models(*kinds: str) -> dict[str, Any]:
    """Decoders of captions, by the kind of their attention."""
    made: dict[str, Any] = {}
    for kind in kinds:
        if kind == "transformer":
            made[kind] = ImageTransformer(11, CHANNELS, PLACES, D, 1, 1, 2, 12, dropout=0.0)
        else:
            made[kind] = ShowAttendTell(11, CHANNELS, D, attention=kind, dropout=0.0)
    return {kind: with_weights(model) for kind, model in made.items()}


def extractor() -> FeatureExtractor:
    """Two convolutions and a normalization, to a map of 2 x 2."""
    entered = keras.Input((SIDE, SIDE, 3))
    x = keras.layers.Rescaling(1 / 128.0, -1.0)(entered)
    x = keras.layers.Conv2D(5, 2, 2, activation="relu", name="first")(x)
    x = keras.layers.BatchNormalization(name="norm")(x)
    x = keras.layers.Conv2D(CHANNELS, 2, 2, name="second")(x)
    made = FeatureExtractor(keras.Model(entered, x))
    for i, variable in enumerate(v for v in made.weights if "moving" not in v.path):
        variable.assign(np.random.default_rng(i).normal(0.0, 0.4, tuple(variable.shape)))
    return made


def caption_outputs() -> dict[str, Any]:
    """Logits, a step and the maps of each decoder, the losses of attention, and a network's map."""
    found = {"features": extractor()(PIXELS)}
    for name, model in caption_models("soft", "hard", "mean", "transformer").items():
        given = {"features": FEATURES, "target_token_ids": TOKENS}
        outputs, memory = model(given), model.encode(given)
        found |= {f"{name}/logits": outputs["logits"], f"{name}/step": one_step(model, memory)}
        for layer, scores in enumerate(model.memory_scores(TOKENS, memory)):
            found[f"{name}/scores_{layer}"] = scores
        if name == "hard":  # the draws of training are those of the backend
            outputs |= {"chosen": CHOSEN, "is_soft": np.array([[0.0], [1.0], [0.0]], "float32")}
        found[f"{name}/attention_loss"] = model.attention_loss(NEXT, outputs, 0.5)
    return found


def training_to_caption() -> dict[str, np.ndarray]:
    """The losses of some steps of decoders whose training draws nothing, and of a network too."""
    found = {}
    for name, model in caption_models("soft", "mean", "transformer").items():
        task = Captioning(model, extractor(), train_extractor=True)
        task.compile(AdamW(0.01, weight_decay=0.0))
        given = {"batch_size": 3, "epochs": 4, "shuffle": False, "verbose": 0}
        images = {"pixels": PIXELS, "target_token_ids": TOKENS}
        history = task.fit(images, NEXT, **given).history
        found[f"losses_of_caption_{name}"] = np.array(history["loss"])
    return found
