"""The model of a configuration and the batch of a core, without data."""

import re

import pytest
import tensorflow as tf

from kbert.data.pretraining.records import write_records
from kbert.data.translation.parallel_batches import Bucket
from kbert.models.bert import Bert
from kbert.tpu_check.models import (
    PUBLISHED_SIZES,
    checked_model,
    longest_bucket,
    made_up_vocabulary,
)
from kbert.training.config.any_config import config_from_yaml
from kbert.training.config.captioning_config import CaptioningConfig
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.translation.inputs import translation_bucket
from tests.small_translator import small_subwords

_TINY = {"num_layers": 1, "hidden_dim": 16, "num_heads": 2, "intermediate_dim": 32}
_RUN = {"train": "x.tsv", "encoder": "scratch:tiny", "vocabulary": "none.txt", "output": "o"}


def shapes(batch):
    inputs, targets = batch
    targets = targets if isinstance(targets, dict) else {"targets": targets}
    inputs = inputs | targets
    return {name: tuple(spec.shape) for name, spec in inputs.items()}


def test_pretraining():
    config = PretrainingConfig(
        text=["x"], vocabulary_size=40, max_sequence_length=20, max_predictions=4, batch_size=6,
        output="o", **_TINY,
    )
    found = checked_model(config, cores=2)
    assert shapes(found.batch) == {
        "token_ids": (3, 20), "segment_ids": (3, 20), "padding_mask": (3, 20),
        "masked_positions": (3, 4), "masked_tokens": (3, 4), "next_sentence": (3,),
    }
    assert found.model.encoder.vocabulary_size == 40
    assert found.model.optimizer.built


def of_records(files, **others):
    return PretrainingConfig(
        records=files, vocabulary="vocab.txt", max_sequence_length=20, batch_size=6, output="o",
        **_TINY, **others,
    )


def test_records_say_how_many_tokens_are_masked(tmp_path):
    """Two in these; the share would be three."""
    inputs = {
        "token_ids": tf.ones((2, 20), tf.int32),
        "segment_ids": tf.zeros((2, 20), tf.int32),
        "padding_mask": tf.ones((2, 20), tf.bool),
        "masked_positions": tf.ones((2, 2), tf.int32),
    }
    targets = {"masked_tokens": tf.ones((2, 2), tf.int32), "next_sentence": tf.zeros(2, tf.int32)}
    write_records([(inputs, targets)], tmp_path / "records", 1)
    config = of_records([str(tmp_path / "records" / "*.tfrecord")])
    found = shapes(checked_model(config, 2).batch)
    assert found["masked_positions"] == found["masked_tokens"] == (3, 2)
    assert found["next_sentence"] == (3,)


def test_records_that_are_not_here_have_the_share(caplog):
    found = checked_model(of_records(["none/*.tfrecord"]), 2)
    assert shapes(found.batch)["masked_positions"] == (3, 3)
    assert len(found.model.tokenizer.vocabulary) == 30522
    assert "masked tokens counted by their share, not in the records" in caplog.text


def test_tokens_are_masked_as_a_run_counts_them():
    """0.15 of 128 are 19.2: up to 20 are masked."""
    config = PretrainingConfig(text=["x"], vocabulary_size=40, batch_size=2, output="o", **_TINY)
    assert shapes(checked_model(config, 2).batch)["masked_tokens"] == (1, 20)


def test_left_to_right():
    config = PretrainingConfig(
        text=["x"], vocabulary_size=40, max_sequence_length=20, batch_size=6, objective="lm",
        output="o", **_TINY,
    )
    assert shapes(checked_model(config, 2).batch)["next_tokens"] == (3, 20)


@pytest.mark.parametrize(
    "values, expected",
    [
        ({"task": "classification", "labels": ["a", "b", "c"]}, (4,)),
        ({"task": "multi-label", "labels": ["a", "b", "c"]}, (4, 3)),
        ({"task": "regression"}, (4,)),
        ({"task": "question-answering"}, (4, 1, 2)),
    ],
)
def test_finetuning(values, expected):
    length = 24
    more = {"max_question_length": 8, "stride": 4} if "question" in values["task"] else {}
    config = RunConfig(**_RUN, **values, **more, batch_size=8, max_sequence_length=length)
    found = checked_model(config, cores=2)
    assert shapes(found.batch)["token_ids"] == (4, length)
    assert shapes(found.batch)["targets"] == expected
    assert len(found.model.tokenizer.vocabulary) == 30522  # as the published ones


def test_translation_has_the_shape_of_its_longest_pairs():
    config = TranslationConfig(
        train="x.tsv", vocabulary_size=60, max_length=15, max_sequence_length=32,
        batch_tokens=128, output="o",
        num_encoder_layers=1, num_decoder_layers=1, hidden_dim=16, num_heads=2, intermediate_dim=32,
    )
    # 15 pieces and the end are 16; 128 / 16 = 8 rows, 4 a core.
    assert longest_bucket(config, 2) == Bucket(4, 16)
    found = checked_model(config, 2)
    assert shapes(found.batch)["target_token_ids"] == (4, 16)
    assert found.model.transformer.vocabulary_size == 60


def test_translation_has_the_pieces_of_given_subwords(tmp_path):
    names = {size: str(tmp_path / f"{size}.model") for size in (60, 70)}
    for size, name in names.items():
        small_subwords(size=size).save(name)
    tiny = {"max_length": 15, "batch_tokens": 128, "size": "tiny", "num_encoder_layers": 1}
    for target, sizes in ((None, (None, 60)), (names[60], (None, 60)), (names[70], (60, 70))):
        given = {"source_subwords": names[60], "target_subwords": target}
        config = TranslationConfig(train="x.tsv", output="o", **tiny, **given)
        transformer = checked_model(config, 2).model.transformer
        assert (transformer.source_vocabulary_size, transformer.vocabulary_size) == sizes
        assert transformer.tied == ("target" if target == names[70] else "all")


@pytest.fixture
def tiny_published(monkeypatch):
    monkeypatch.setitem(PUBLISHED_SIZES, "bert-base-uncased", ("tiny", 40))
    return {"train": "x.tsv", "encoder": "bert-base-uncased", "output": "o", "batch_size": 8}


@pytest.mark.parametrize(
    "values",
    [
        {"adapter": "lora"},
        {"adapter": "pfeiffer", "class_weights": "balanced"},
        {"features": "last", "head": "bilstm", "lstm_dim": 4},
    ],
)
def test_what_trains_beside_a_published_encoder(tiny_published, values):
    config = RunConfig(**tiny_published, **values, labels=["a", "b"])
    model = checked_model(config, 2).model
    assert model.encoder.vocabulary_size == 40
    paths = [variable.path for variable in model.trainable_variables]
    assert len(paths) > 2 and not any("embeddings" in path for path in paths)


def test_of_features_a_batch_has_the_states(tiny_published):
    """Of the embeddings and two blocks, 128 numbers each; a step does not compute them again."""
    config = RunConfig(**tiny_published, task="regression", features="mix")
    batch = checked_model(config, 2).batch
    assert shapes(batch)["states"] == (4, 128, 3 * 128)
    assert batch[0]["states"].dtype == "float16"


def test_a_fusion_of_adapters_of_a_model_and_alone(tiny_published, tmp_path):
    """The encoder's weights beside an adapter are not those of the check."""
    folders = [tmp_path / "one", tmp_path / "two"]
    encoder = Bert.from_size("tiny", 40)
    encoder.add_adapter("own", "pfeiffer")
    encoder.save_adapter(folders[0], "own")
    encoder.train_adapter("own")
    made_up_vocabulary(40).save(tmp_path / "vocab.txt")
    encoder.save_pretrained(folders[1], vocabulary=tmp_path / "vocab.txt")
    config = RunConfig(**tiny_published, task="regression", fuse=[str(one) for one in folders])
    model = checked_model(config, 2).model
    assert model.encoder.active_adapters == ["one", "two"]
    assert folders[0].is_dir() and folders[1].is_dir()


@pytest.mark.parametrize(
    "task, key", [("classification", "class_weights"), ("multi-label", "positive_weights")]
)
def test_balanced_weights_need_no_examples(task, key):
    config = RunConfig(**_RUN, task=task, labels=["a", "b"], class_weights="balanced")
    loss = checked_model(config, 1).model.loss
    assert loss.get_config()[key] == [1.0, 1.0]


def test_cores_get_the_rows_of_a_run():
    config = TranslationConfig(
        train="x.tsv", output="o", max_length=15, batch_tokens=7 * 16, strategy="tpu"
    )
    for cores in (2, 3, 7):
        whole = translation_bucket(config, replicas=cores)
        assert longest_bucket(config, cores) == Bucket(whole.rows // cores, whole.length)
        assert whole.rows % cores == 0


@pytest.mark.parametrize(
    "config, message",
    [
        (
            RunConfig(**_RUN, task="regression", batch_size=6),
            "`batch_size` must be divisible by 4, the cores that share a batch. Received: "
            "batch_size=6",
        ),
        (
            RunConfig(**_RUN, task="regression", batch_tokens=100),
            "`batch_tokens` must be left out on TPUs",
        ),
        (RunConfig(**_RUN, task="ner"), "others have no fixed shapes yet. Received: task='ner'"),
        (RunConfig(**_RUN), "`labels` must be given for a check of a classification"),
        (
            TranslationConfig(train="x", output="o", batch_tokens=100, max_length=99),
            "`batch_tokens` must be at least 416, a pair of 104 tokens for each of 4 cores",
        ),
        (TranslationConfig(train="x", output="o", bert="b"), "`bert` must be left out"),
        (
            TranslationConfig(train="x", output="o", warm_start="w"),
            "`warm_start` must be left out of a check, and the options of its sizes and subwords "
            "be given instead. Received: warm_start='w'",
        ),
        (
            CaptioningConfig(train="x", images="i", output="o"),
            "`config` must be of one task on an encoder, of translation or of pretraining. "
            "Received: task='captioning'",
        ),
    ],
)
def test_what_has_no_fixed_shapes_is_an_error(config, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        checked_model(config, cores=4)


def test_the_shipped_configurations_are_valid(tpu_configs):
    found = {path.stem for path in tpu_configs.glob("*.yaml") if config_from_yaml(path)}
    assert found == {"tiny", "pretrain_base", "glue_mnli", "squad", "translation_base"}


def test_the_shipped_configurations_loop_on_the_host(tpu_configs):
    for path in tpu_configs.glob("*.yaml"):
        assert config_from_yaml(path).steps_per_execution > 1, path


def test_a_made_up_vocabulary_has_its_size():
    assert len(made_up_vocabulary(12)) == 12
