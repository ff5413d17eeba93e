"""The table of architectures: names that are loaded on demand."""

import subprocess
import sys

import keras
import pytest

from kbert.architectures import (
    ENCODER_DECODERS,
    ENCODERS,
    check_known,
    encoder_class,
    encoder_decoder_class,
    encoder_layout,
)
from kbert.checkpoints.arrays.encoder_layout import EncoderLayout
from kbert.models.encoder_decoders.encoder_decoder import EncoderDecoder
from tests.small_bert import small_bert
from tests.small_translator import small_translator


@pytest.mark.parametrize("name", ENCODERS)
def test_the_parts_of_an_encoder_know_its_name(name: str):
    kind, layout = encoder_class(name), encoder_layout(name)
    assert issubclass(kind, keras.Model) and kind.architecture == name
    assert isinstance(layout, EncoderLayout) and layout.architecture == name


@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_an_encoder_decoder_knows_its_name(name: str):
    assert encoder_decoder_class(name).architecture == name


def test_the_models_are_of_the_classes():
    for name, fused in (("transformer", False), ("bert-fused", True)):
        model = small_translator(fused).transformer
        assert type(model) is encoder_decoder_class(name) and isinstance(model, EncoderDecoder)


def test_summaries_have_the_shapes_of_the_layers():
    lines: list[str] = []
    models = (small_bert(), small_translator(False).transformer, small_translator(True).transformer)
    for model in models:
        lines.clear()
        model.summary(print_fn=lambda text, line_break=None: lines.append(text))
        wanted = "embeddings" if isinstance(model, encoder_class("bert")) else "decoder_block_0"
        (line,) = (line for line in "\n".join(lines).split("\n") if wanted in line)
        assert f"(None, None, {model.hidden_dim})" in line


@pytest.mark.parametrize(
    "function, known",
    [
        (encoder_class, "bert"),
        (encoder_layout, "bert"),
        (encoder_decoder_class, "transformer, bert-fused"),
    ],
)
def test_an_unknown_name(function, known: str):
    message = f"`architecture` must be one of {known}.*. Received: architecture='gpt'"
    with pytest.raises(ValueError, match=message):
        function("gpt")


def test_a_name_from_a_file():
    check_known("bert", ENCODERS, "`kbert.json`")
    with pytest.raises(ValueError, match=r"^`kbert.json`: `architecture` must be one of bert"):
        check_known(["bert"], ENCODERS, "`kbert.json`")


def test_nothing_is_loaded_for_the_names():
    program = (
        "import sys, kbert.architectures as a\n"
        "a.check_known('bert', a.ENCODERS)\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('keras', 'numpy')])"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert printed.stdout.strip() == "[]", printed.stderr
