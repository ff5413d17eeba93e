"""The model that a configuration trains, and the shapes of a core's batches, without any data.

Weights are random and the vocabulary is made up: the compiled program depends only on sizes.
"""

import logging
import math
import tempfile
from collections.abc import Sized
from dataclasses import dataclass, replace
from functools import singledispatch
from pathlib import Path
from typing import Any

import tensorflow as tf

from kbert.architectures import BERT, ENCODERS, encoder_class, encoder_decoder_class
from kbert.checkpoints.adapter_folder import ADAPTER_CONFIG, adapter_of, write_adapter
from kbert.checkpoints.adapter_hub.folder import CONFIG as HUB_CONFIG
from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.data.classification.glue_tasks import glue_task
from kbert.data.classification.text_pairs import TextExamples
from kbert.data.features.cache import DTYPE
from kbert.data.pretraining.records_dataset import records_dataset
from kbert.data.translation.parallel_batches import Bucket
from kbert.pipelines.tokenizers import tokenizer_of_file
from kbert.tasks.pretraining.objectives import has_pairs, is_causal
from kbert.tasks.registry import finetuned_task, finetuned_tasks
from kbert.tasks.translation.head import Translation
from kbert.text.byte_level_bpe.byte_level_bpe import ByteLevelBPE
from kbert.text.tokenizer import Tokenizer
from kbert.text.vocabulary import BERT_TOKENS, ROBERTA_TOKENS, Vocabulary, byte_characters
from kbert.text.wordpiece.wordpiece import WordPiece
from kbert.training.config.any_config import StoredConfig
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.pretraining.model import build_pretrained, compile_pretrained
from kbert.training.pretraining.sources import found_records
from kbert.training.recipes.finetuned_model import build_model, compile_model
from kbert.training.recipes.finetuning import RunData
from kbert.training.translation.examples import given_subwords
from kbert.training.translation.inputs import translation_bucket
from kbert.training.translation.model import compile_translator, model_arguments

logger = logging.getLogger(__name__)
# Size and tokens of published encoders, which need not be downloaded to be compiled.
# Source: config.json and vocab.txt of each.
PUBLISHED_SIZES = {
    "bert-base-uncased": ("base", 30522),
    "bert-base-cased": ("base", 28996),
    "bert-large-uncased": ("large", 30522),
    "bert-large-cased": ("large", 28996),
    "bert-base-multilingual-uncased": ("base", 105879),
    "bert-base-multilingual-cased": ("base", 119547),
    "bert-base-chinese": ("base", 21128),
}
_STEPS = 1000


@dataclass(frozen=True)
class CheckedModel:
    """The model to check, and the batch of a core."""

    model: Any  # compiled, with its optimizer built
    batch: Any  # specifications of (inputs, targets), with fixed shapes
    about: str  # the batch in words


def checked_model(config: StoredConfig, cores: int) -> CheckedModel:
    """Makes the model of a configuration, and the batch of one of so many cores."""
    found = _made(config, cores)
    found.model.optimizer.build(found.model.trainable_variables)
    return found


@singledispatch
def _made(config: StoredConfig, cores: int) -> CheckedModel:
    raise ValueError(
        "`config` must be of one task on an encoder, of translation or of pretraining. Received: "
        f"task={getattr(config, 'task', config)!r}"
    )


def made_up_vocabulary(size: int) -> Vocabulary:
    """Makes a vocabulary of placeholder tokens, of this size with the special ones."""
    special = BERT_TOKENS.names
    return Vocabulary([*special, *(f"token{i}" for i in range(size - len(special)))])


def _made_up_tokenizer(config: PretrainingConfig, size: int) -> Tokenizer:
    if not ENCODERS[config.architecture].byte_level:
        return WordPiece(made_up_vocabulary(size), special_tokens_in_text=True)
    tokens = [*ROBERTA_TOKENS.names, *byte_characters()]
    tokens += [f"token{i}" for i in range(size - len(tokens))]
    return ByteLevelBPE(Vocabulary(tokens, ROBERTA_TOKENS), [], special_tokens_in_text=True)


def longest_bucket(config: TranslationConfig, cores: int) -> Bucket:
    """Returns the shape of a core's batches, where so many cores share `batch_tokens`."""
    whole = translation_bucket(config, replicas=cores)
    return Bucket(whole.rows // cores, whole.length)


@_made.register
def _pretraining(config: PretrainingConfig, cores: int) -> CheckedModel:
    rows, length = _rows(config.batch_size, cores), config.max_sequence_length
    tokenizer, sized = None, config
    if config.encoder is None or config.encoder in PUBLISHED_SIZES:
        size, tokens = PUBLISHED_SIZES.get(config.encoder or "", (config.size, 0))
        if config.vocabulary is not None and Path(config.vocabulary).is_file():
            tokenizer = tokenizer_of_file(config.vocabulary, special_tokens_in_text=True)
        else:
            tokenizer = _made_up_tokenizer(config, tokens or config.vocabulary_size or 30522)
        # In one step: a configuration checks itself, and records have another vocabulary.
        others: dict[str, Any] = {"encoder": None, "vocabulary": None, "size": size}
        others |= {"vocabulary_size": len(tokenizer.vocabulary), "records": None, "text": ["none"]}
        sized = replace(config, **others)
    model = build_pretrained(sized, tokenizer)
    compile_pretrained(model, sized)
    inputs = _tokens(rows, length)
    targets: dict[str, tf.TensorSpec] = {}
    if is_causal(config.objective):
        targets["next_tokens"] = tf.TensorSpec((rows, length), tf.int32)
    else:
        most = _predictions(config)
        inputs["masked_positions"] = tf.TensorSpec((rows, most), tf.int32)
        targets["masked_tokens"] = tf.TensorSpec((rows, most), tf.int32)
    if has_pairs(config.objective):
        targets["next_sentence"] = tf.TensorSpec((rows,), tf.int32)
    return CheckedModel(model, (inputs, targets), f"{rows} examples of {length} tokens")


def _predictions(config: PretrainingConfig) -> int:
    """Returns the most masked tokens of an example, by the records if they are here."""
    if config.records is not None:
        try:
            (first, *_) = found_records("records", config.records)
            of_records = records_dataset([first], batch_size=1, epochs=1, shuffle=False)
            return int(of_records.element_spec[0]["masked_positions"].shape[1])
        except OSError as error:
            logger.warning("masked tokens counted by their share, not in the records: %s", error)
    share = math.ceil(config.max_sequence_length * config.masked_share)
    return share if config.max_predictions is None else config.max_predictions


@_made.register
def _finetuning(config: RunConfig, cores: int) -> CheckedModel:
    task = finetuned_task(config.task)
    if task.fixed_length is None:
        known = [one.name for one in finetuned_tasks() if one.fixed_length is not None]
        raise ValueError(
            f"`task` must be one of {', '.join(known)}, translation and pretraining: others have "
            f"no fixed shapes yet. Received: task={config.task!r}"
        )
    if config.batch_tokens is not None:
        raise ValueError(
            "`batch_tokens` must be left out on TPUs: each shape of a batch would be compiled "
            f"anew. Received: batch_tokens={config.batch_tokens}"
        )
    data = _labels_alone(config)
    if config.class_weights == "balanced":  # by the examples, which are not here: any will do
        config = config.with_values(class_weights=dict.fromkeys(data.labels or (), 1.0))
    with tempfile.TemporaryDirectory() as folder:
        sized = _random_encoder(config, Path(folder))
        model = build_model(sized, data)
    compile_model(model, sized, data, _STEPS)
    rows = _rows(config.batch_size, cores)
    length = config.max_sequence_length or task.fixed_length
    inputs = _tokens(rows, length)
    if config.features is not None:  # the encoder's states are computed before the steps
        inputs["states"] = tf.TensorSpec((rows, length, model.encoder.frozen_dim), DTYPE)
    batch = (inputs, task.target_spec(rows, data.labels))
    return CheckedModel(model, batch, f"{rows} examples of {length} tokens")


@_made.register
def _translation(config: TranslationConfig, cores: int) -> CheckedModel:
    if config.bert is not None:
        raise ValueError(
            "`bert` must be left out of a check, which does not know the longest source. "
            f"Received: bert={config.bert!r}"
        )
    if config.warm_start is not None:
        raise ValueError(
            "`warm_start` must be left out of a check, and the options of its sizes and subwords "
            f"be given instead. Received: warm_start={config.warm_start!r}"
        )
    bucket = longest_bucket(config, cores)
    arguments = model_arguments(config, given_subwords(config) or _made_up_pieces(config))
    transformer = encoder_decoder_class(config.architecture)(**arguments, dtype=config.precision)
    model = Translation(transformer, config.label_smoothing, dtype=config.precision)
    compile_translator(model, config)
    tokens = tf.TensorSpec((bucket.rows, bucket.length), tf.int32)
    inputs = {
        "source_token_ids": tokens,
        "source_padding_mask": tf.TensorSpec(tokens.shape, tf.bool),
        "target_token_ids": tokens,
    }
    about = f"{bucket.rows} pairs of {bucket.length} tokens a side"
    return CheckedModel(model, (inputs, tokens), about)


def _made_up_pieces(config: TranslationConfig) -> tuple[Sized, Sized]:
    """Returns as many pieces as subwords would be learned; one object where they are shared."""
    source = range(config.vocabulary_size)
    return source, source if config.subwords == "joint" else range(config.vocabulary_size)


def _random_encoder(config: RunConfig, folder: Path) -> RunConfig:
    """Returns the configuration with random weights, if its encoder would be downloaded.

    The weights are in `folder` for options that a new encoder may not have.
    """
    is_here = config.encoder not in PUBLISHED_SIZES and config.scratch_size is None
    if is_here or (config.vocabulary is not None and Path(config.vocabulary).is_file()):
        return config
    size, tokens = PUBLISHED_SIZES.get(config.encoder or "", (config.scratch_size, 30522))
    vocabulary = folder / "vocab.txt"
    made_up_vocabulary(tokens).save(vocabulary)
    if any(given is not None for given in (config.adapter, config.features, config.fuse)):
        encoder = encoder_class(BERT).from_size(size, tokens)
        made = encoder.save_pretrained(folder / "encoder", vocabulary=vocabulary)
        adapters = [_adapter_alone(one, folder) for one in config.fuse or ()]
        return config.with_values(encoder=str(made), fuse=adapters or None)
    return config.with_values(encoder=f"scratch:{size}", vocabulary=str(vocabulary))


def _adapter_alone(source: str, folder: Path) -> str:
    """Returns the folder of an adapter without an encoder, which may then have other weights."""
    if any((Path(source) / name).is_file() for name in (ADAPTER_CONFIG, HUB_CONFIG)):
        return source
    adapter = adapter_of(read_checkpoint(source), source)
    # A fusion knows it by the name of its folder.
    return str(write_adapter(adapter, folder / "adapters" / Path(source).name))


def _labels_alone(config: RunConfig) -> RunData:
    """Returns the facts about the examples that are known without reading them."""
    labels, pair = config.labels, config.text_b is not None
    if config.glue is not None:
        task = glue_task(config.glue)
        labels, pair = list(task.labels) or None, len(task.text_columns) == 2
    if "labels" in finetuned_task(config.task).options and labels is None:
        raise ValueError(
            "`labels` must be given for a check of a classification, or `glue`. "
            "Received: labels=None"
        )
    empty = TextExamples([], [] if pair else None, None, None, "no data", [])
    return RunData(empty, None, None, labels, config.glue)


def _tokens(rows: int, length: int) -> dict[str, tf.TensorSpec]:
    tokens = tf.TensorSpec((rows, length), tf.int32)
    mask = tf.TensorSpec((rows, length), tf.bool)
    return {"token_ids": tokens, "segment_ids": tokens, "padding_mask": mask}


def _rows(batch_size: int, cores: int) -> int:
    if batch_size % cores:
        raise ValueError(
            f"`batch_size` must be divisible by {cores}, the cores that share a batch. "
            f"Received: batch_size={batch_size}"
        )
    return batch_size // cores
