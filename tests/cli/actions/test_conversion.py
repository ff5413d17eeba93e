import json

import numpy as np
import pytest

from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.cli.actions.conversion import convert_checkpoint, fixed_input
from kbert.pipelines.tokenizers import tokenizer_of
from kbert.tasks.classification.model import Classifier
from kbert.tasks.load import load
from tests.checkpoints.synthetic_bert import hf_tensors, write_hf
from tests.small_pipelines import small_classifier, small_embedder, small_encoder


@pytest.mark.parametrize("format", ["huggingface", "kbert", "tf1"])
def test_encoder_and_head_travel(finished_run, tmp_path, format):
    found = convert_checkpoint(str(finished_run), tmp_path / "to", format, overwrite=False)
    difference = found["largest_absolute_difference"]
    assert difference["sequence_output"] == difference["pooled_output"] == 0.0
    assert difference["heads"] == {"classifier.weight": 0.0, "classifier.bias": 0.0}
    assert found["source_format"] == "kbert" and found["target_format"] == format
    before, after = read_checkpoint(finished_run / "model"), read_checkpoint(found["target"])
    assert before.vocabulary_bytes() == after.vocabulary_bytes()
    if format == "tf1":
        assert "no place for the names of the labels" in found["notes"][-1]
        return
    texts = ["the film was good", "dull"]
    one, two = (load(x) for x in (finished_run / "model", found["target"]))
    assert two.labels == one.labels == ["down", "up"]
    assert two.max_sequence_length == one.max_sequence_length
    np.testing.assert_allclose(one.predict(texts), two.predict(texts), atol=1e-6)


def test_there_and_back_again(tiny, tmp_path):
    convert_checkpoint(str(tiny.encoder), tmp_path / "hf", "huggingface", overwrite=False)
    found = convert_checkpoint(str(tmp_path / "hf"), tmp_path / "back", "kbert", overwrite=False)
    assert found["largest_absolute_difference"]["sequence_output"] == 0.0
    first, last = read_checkpoint(tiny.encoder), read_checkpoint(tmp_path / "back")
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, last.arrays[name])


def test_models_that_embed_texts(tiny, tmp_path):
    model = small_embedder(dense=5)
    model.save_pretrained(tmp_path / "kbert")
    found = convert_checkpoint(
        str(tmp_path / "kbert"), tmp_path / "to", "sentence-transformers", overwrite=False
    )
    difference = found["largest_absolute_difference"]
    assert difference["sequence_output"] == 0.0
    assert difference["heads"] == {"dense.weight": 0.0, "dense.bias": 0.0}
    assert load(tmp_path / "to").get_config() == model.get_config()
    file = tmp_path / "to" / "config_sentence_transformers.json"
    about = {"prompts": {"query": "query: "}, "similarity_fn_name": "dot"}
    file.write_text(json.dumps(about), encoding="utf-8")
    convert_checkpoint(str(tmp_path / "to"), tmp_path / "copy", "sentence-transformers", False)
    assert json.loads((tmp_path / "copy" / file.name).read_text(encoding="utf-8")) == about
    with pytest.raises(ValueError, match="`SRC` must be a model that embeds texts for the format"):
        convert_checkpoint(str(tiny.encoder), tmp_path / "no", "sentence-transformers", False)


def test_the_fixed_input_has_padding_and_both_segments():
    inputs = fixed_input(vocabulary_size=30522, max_sequence_length=512)
    real = inputs["padding_mask"]
    assert real.sum(axis=1).tolist() == [32, 32, 17, 1]
    assert set(inputs["segment_ids"][0].tolist()) == {0, 1}
    assert len(np.unique(inputs["token_ids"])) > 50 and inputs["token_ids"].max() < 30522
    assert fixed_input(11, 4)["token_ids"].shape == (4, 4)


@pytest.mark.parametrize("format", ["huggingface", "kbert", "tf1"])
def test_a_tokenizer_that_is_not_read(tmp_path, format):
    source = write_hf(tmp_path / "source", hf_tensors())
    (source / "added_tokens.json").write_text('{"<user>": 11}')
    found = convert_checkpoint(str(source), tmp_path / "to", format, overwrite=False)
    checkpoint = read_checkpoint(found["target"])
    # The words alone would split texts in another way than the source does.
    assert (checkpoint.vocabulary_bytes() is None) == (format != "kbert")
    note = "The target has no tokenizer; not read here: added tokens, '<user>'."
    assert (note in found["notes"]) == (format != "kbert")
    with pytest.raises(ValueError, match="the checkpoint must have a (tokenizer|vocabulary)"):
        tokenizer_of(checkpoint)


@pytest.mark.parametrize("format", ["huggingface", "tf1"])
def test_rules_of_the_tokenizer_travel(tmp_path, format):
    source = write_hf(tmp_path / "source", hf_tensors())
    rules = {"do_lower_case": True, "strip_accents": False, "tokenize_chinese_chars": False}
    (source / "tokenizer_config.json").write_text(json.dumps(rules), encoding="utf-8")
    found = convert_checkpoint(str(source), tmp_path / "to", format, overwrite=False)
    checkpoint = read_checkpoint(found["target"])
    assert checkpoint.lowercase is True
    assert checkpoint.tokenizer_rules == {"strip_accents": False, "handle_cjk": False}


@pytest.mark.parametrize("format", ["huggingface", "tf1"])
def test_what_other_formats_have_no_place_for(tmp_path, format):
    encoder = small_encoder()
    encoder.add_adapter("mine", "lora")
    encoder.save_pretrained(tmp_path / "adapted")
    base = small_classifier().save_pretrained(tmp_path / "base")
    given = {"labels": ["a", "b"], "from_other_task": True, "features": "last"}
    Classifier.from_pretrained(base, **given).save_pretrained(tmp_path / "features")
    for name, what in (("adapted", "adapters"), ("features", "`features`, layers on a frozen")):
        message = f'`format` must be "kbert" for an encoder with {what}.*format=\'{format}\''
        with pytest.raises(ValueError, match=message):
            convert_checkpoint(str(tmp_path / name), tmp_path / "to", format, overwrite=False)
        assert not (tmp_path / "to").exists()
