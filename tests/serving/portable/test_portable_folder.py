"""Folders of networks: settings for other libraries, the card, and that they appear whole."""

import json

import pytest

from kbert.serving.portable.portable_folder import (
    NetworkTensor,
    portable_folder,
    write_card,
    write_settings,
)
from tests.small_pipelines import (
    small_classifier,
    small_embedder,
    small_multi_label_classifier,
    small_question_answerer,
)


def settings_of(model, folder):
    write_settings(folder, model)
    return [
        json.loads((folder / name).read_text("utf-8"))
        for name in ("config.json", "tokenizer_config.json", "tokenizer.json")
    ]


def test_settings_of_a_classifier(tmp_path):
    config, tokenizer, _ = settings_of(small_classifier(), tmp_path)
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["id2label"] == {"0": "no", "1": "yes", "2": "perhaps"}
    assert (config["vocab_size"], config["hidden_size"]) == (66, 16)
    assert config["kbert"]["class"] == "Classifier"
    assert config["kbert"]["max_sequence_length"] == 24
    assert tokenizer["tokenizer_class"] == "BertTokenizer"


def test_settings_of_other_tasks(tmp_path):
    config, _, _ = settings_of(small_multi_label_classifier(threshold=0.25), tmp_path)
    assert config["problem_type"] == "multi_label_classification"
    assert config["kbert"]["threshold"] == 0.25
    config, _, file = settings_of(small_question_answerer(), tmp_path)
    assert config["architectures"] == ["BertForQuestionAnswering"] and "id2label" not in config
    assert config["kbert"]["max_question_length"] == 6
    cut = {"direction": "Right", "max_length": 24, "strategy": "OnlySecond", "stride": 4}
    assert file["truncation"] == cut
    config, _, file = settings_of(small_embedder(), tmp_path)
    assert config["architectures"] == ["BertModel"]
    assert file["truncation"]["strategy"] == "LongestFirst"


def test_the_card_names_what_goes_in_and_out(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"12345")
    tensors = [NetworkTensor("ids", "int64", ["n"])], [NetworkTensor("logits", "float32", ["n", 3])]
    about = {"data": [{"part": "train", "examples": 1234, "source": "a.tsv"}], "metrics": {}}

    def card(*files):
        networks = dict.fromkeys(files, tensors)
        notes = ["Anything runs it.", "Ids go in."]
        write_card(tmp_path, "a.b", small_classifier(), networks, notes, about)
        return (tmp_path / "README.md").read_text("utf-8")

    one = card("model.onnx")
    assert one.startswith("# a.b\n\nThe network of a Classifier of kbert ")
    assert "\n\nAnything runs it.\n\nIds go in.\n\n|  | name | type | shape |" in one
    assert "| input | `ids` | int64 | n |\n| output | `logits` | float32 | n, 3 |" in one
    assert "\n5 bytes, float32." in one and "| train | 1,234 | a.tsv |" in one
    two = card("encoder.onnx", "decoder.onnx")
    for file in ("encoder", "decoder"):
        assert f"\n\n`{file}.onnx`:\n\n|  | name | type | shape |" in two


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    with pytest.raises(RuntimeError), portable_folder(tmp_path, "topics") as folder:
        (folder / "model.onnx").write_bytes(b"half")
        raise RuntimeError("killed")
    assert not list(tmp_path.iterdir())
    with portable_folder(tmp_path, "topics") as folder:
        (folder / "model.onnx").write_bytes(b"whole")
        assert not (tmp_path / "topics").exists()
    assert (tmp_path / "topics" / "model.onnx").read_bytes() == b"whole"
    with (
        pytest.raises(FileExistsError, match="a folder that is not there yet. Received: .*topics"),
        portable_folder(tmp_path, "topics"),
    ):
        pass
    with pytest.raises(ValueError, match="`name` must be made of"), portable_folder(tmp_path, "1"):
        pass
