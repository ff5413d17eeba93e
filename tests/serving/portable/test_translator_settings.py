"""Settings of a translator's networks, in the layout of Marian's models."""

import json

import pytest
import sentencepiece

from kbert.serving.portable.translator_settings import write_translator_settings
from kbert.tasks.translation.model import Translator
from tests.small_translator import LINES, shared_translator, small_subwords


def settings_of(model, folder):
    write_translator_settings(folder, model)
    return {
        file.stem: json.loads(file.read_text("utf-8")) for file in folder.iterdir()
        if file.suffix == ".json"
    }


def test_sizes_and_the_tokens_that_begin_and_end(tmp_path):
    model = shared_translator(decoder_layers=2)
    found = settings_of(model, tmp_path)
    config = found["config"]
    assert (config["model_type"], config["is_encoder_decoder"]) == ("marian", True)
    assert (config["d_model"], config["encoder_layers"], config["decoder_layers"]) == (16, 1, 2)
    assert (config["vocab_size"], config["decoder_vocab_size"]) == (60, 60)
    assert config["activation_function"] == "relu" and config["scale_embedding"]
    assert config["kbert"]["class"] == "Translator" and config["kbert"]["length_extra"] == 3
    pieces = model.target_subwords
    ends = {
        "decoder_start_token_id": pieces.start_id,
        "eos_token_id": pieces.end_id,
        "pad_token_id": pieces.padding_id,
    }
    assert ends.items() <= config.items() and ends.items() <= found["generation_config"].items()
    assert "tokenizer" not in found and "target_vocab" not in found


@pytest.mark.parametrize(("penalty", "power"), [("power", 0.6), ("gnmt", 0.0)])
def test_the_search(penalty, power, tmp_path):
    model = shared_translator(beam_size=4, nbest=3, length_penalty=penalty, alpha=0.6)
    found = settings_of(model, tmp_path)["generation_config"]
    expected = {"num_beams": 4, "num_return_sequences": 3, "max_length": 40}
    assert expected.items() <= found.items() and found["length_penalty"] == power


def test_subwords_of_both_sides(tmp_path):
    shared = shared_translator()
    source, target = small_subwords(), small_subwords("unigram")
    found = settings_of(Translator(shared.transformer, source, target), tmp_path)
    assert found["tokenizer_config"]["separate_vocabs"]
    sides = (("source", "vocab", source), ("target", "target_vocab", target))
    for name, vocabulary, subwords in sides:
        read = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / f"{name}.spm"))
        ids = subwords.tokenize(LINES[:3]).to_list()
        assert read.encode(LINES[:3]) == ids
        pieces = read.encode(LINES[:3], out_type=str)
        assert [[found[vocabulary][piece] for piece in line] for line in pieces] == ids
    assert found["tokenizer_config"]["eos_token"] == "</s>"


def test_a_model_with_bert_has_its_tokenizer_and_no_class_of_transformers(tmp_path):
    found = settings_of(shared_translator(fused=True), tmp_path)
    assert "model_type" not in found["config"] and "architectures" not in found["config"]
    assert found["tokenizer"]["truncation"]["max_length"] == 20
