"""What a configuration tells before anything is read whole; see tests/test_before_tensorflow.py."""

import os

import pytest

from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.config.stages_config import StagesConfig
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.run import check_file, look_first


@pytest.fixture
def files(tmp_path):
    """Files that are right, and options that name them."""
    (tmp_path / "v.txt").write_text("[PAD]\n")
    (tmp_path / "t.tsv").write_text("text\tlabel\ttext_2\nred\tup\trot\n")
    return {
        "train": str(tmp_path / "t.tsv"),
        "vocabulary": str(tmp_path / "v.txt"),
        "encoder": "scratch:tiny",
        "output": str(tmp_path / "run"),
    }


def test_what_is_right_passes(files, tmp_path):
    look_first(RunConfig(**files, validation="tfds:glue/sst2", text_a="text_2"))
    look_first(RunConfig(**{**files, "vocabulary": None, "encoder": "all-MiniLM-L6-v2"}))
    look_first(RunConfig(**{**files, "vocabulary": None, "encoder": "some-org/some-model"}))
    pairs = {"train": files["train"], "source_column": "text", "target_column": "text_2"}
    look_first(TranslationConfig(**pairs, output=files["output"]))
    look_first(TranslationConfig(train="tfds:x", source_language="de", output=files["output"]))
    records = {"records": ["gs://bucket/a*"], "vocabulary": files["vocabulary"]}
    look_first(PretrainingConfig(**records, output=files["output"]))


def test_a_pipe_is_a_file(files, tmp_path):
    os.mkfifo(tmp_path / "pipe.tsv")
    look_first(RunConfig(**{**files, "train": str(tmp_path / "pipe.tsv")}))


def test_a_file_that_is_not_there(tmp_path):
    (tmp_path / "train.tsv").touch()
    message = "`--train` must be a file. Received: '.*', which does not exist. Did you mean `train."
    with pytest.raises(FileNotFoundError, match=message):
        check_file("--train", tmp_path / "trian.tsv")
    with pytest.raises(FileNotFoundError, match="'/no/where', which does not exist$"):
        check_file("--train", "/no/where")
    with pytest.raises(FileNotFoundError, match="which is a folder$"):
        check_file("--train", tmp_path)


def test_the_output_of_one_worker_is_there_for_the_others(files, tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(FileExistsError, match="`output` must not exist yet"):
        look_first(RunConfig(**files))
    look_first(RunConfig(**files, strategy="multi-worker"))


def test_what_is_no_encoder_and_no_translator(files, tmp_path):
    with pytest.raises(ValueError, match="`--encoder` must be a checkpoint"):
        look_first(RunConfig(**{**files, "vocabulary": None, "encoder": str(tmp_path)}))
    pairs = {"train": files["train"], "source_column": "text", "target_column": "text_2"}
    translation = TranslationConfig(**pairs, output=files["output"], warm_start="runs/none")
    with pytest.raises(FileNotFoundError, match="`--warm-start` must be a run or the folder of"):
        look_first(translation)


def test_a_finished_chain_may_be_replaced(tmp_path):
    (tmp_path / "t.tsv").write_text("text\tlabel\nred\tup\nblue\tdown\n")
    for folder in (chain := tmp_path / "chain", chain / "a", chain / "b"):
        folder.mkdir()
        (folder / "config.yaml").touch()
    stages = {name: {"train": str(tmp_path / "t.tsv")} for name in "ab"}
    values = {"stages": stages, "encoder": "all-MiniLM-L6-v2", "output": str(chain)}
    look_first(StagesConfig.from_dict({**values, "overwrite": True}))
    with pytest.raises(FileExistsError, match="`output` must not exist yet"):
        look_first(StagesConfig.from_dict(values))


def test_the_encoder_of_a_stage_that_makes_one_is_not_looked_for(tmp_path):
    (tmp_path / "t.tsv").write_text("text\tlabel\nred\tup\nblue\tdown\n")
    texts = {"task": "pretraining", "text": [str(tmp_path / "t.tsv")], "vocabulary_size": 100}
    stages = {"a": texts, "b": {"train": str(tmp_path / "t.tsv"), "head": "two_layer"}}
    look_first(StagesConfig.from_dict({"stages": stages, "output": str(tmp_path / "new")}))
