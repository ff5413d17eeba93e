"""Text models small enough to train within a test."""

import random
import string
from functools import cache
from typing import Any

import keras
import numpy as np

from kbert.data.batches.packed_examples import text_tensor
from kbert.models.bert import Bert
from kbert.pipelines.signatures import model_inputs
from kbert.tasks.classification.model import Classifier
from kbert.tasks.embedding.model import TextEmbedder
from kbert.tasks.multi_label.model import MultiLabelClassifier
from kbert.tasks.multiple_choice.model import MultipleChoice
from kbert.tasks.ner.model import EntityRecognizer
from kbert.tasks.pretraining.model import MaskedLanguageModel
from kbert.tasks.question_answering.model import QuestionAnswerer
from kbert.tasks.regression.model import Regressor
from kbert.tasks.span_tagging.model import SpanTagger
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece

TOKENS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *("a", "the", "film", "good", "bad", "very", "##ness", "!", ".", "é"),
    *string.ascii_lowercase,
    *(f"##{letter}" for letter in string.ascii_lowercase),
]
VOCABULARY = Vocabulary(dict.fromkeys(TOKENS))
TOKENIZER = WordPiece(VOCABULARY)  # made once: it builds a table of all code points
TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")

# What users and attackers send: nothing, NUL, broken UTF-8, and more than fits.
TEXTS: list[str | bytes] = [
    "a good film",
    "",
    "  \t\n ",
    "Very, VERY bad!",
    "good\0ness \0",
    b"a\0b",
    b"\xff\xfe film \xc3",
    b"good \xed\xa0\x80 film",
    "中文 film \U0001f600",
    "[CLS] [SEP] [MASK] [PAD]",
    "film " * 40,
    "x" * 300,
    "a",
]


def small_encoder(**kwargs: Any) -> Bert:
    """One layer of width 16 with weights so large that texts get different answers."""
    settings = {"dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.5}
    return Bert(len(VOCABULARY), 16, 1, 2, 32, 32, **{**settings, **kwargs})


def small_model(model_class: Any, *arguments: Any, seed: int = 7, **kwargs: Any) -> Any:
    """A model of the class on such an encoder, with a head to match; at most 24 tokens."""
    random.seed(seed)  # which Keras takes its seeds from
    encoder = small_encoder(**{k: kwargs[k] for k in kwargs if k == "dtype"})
    kwargs = {"max_sequence_length": 24, "dropout": 0.0, **kwargs}
    model = model_class(encoder, TOKENIZER, *arguments, **kwargs)
    draw = np.random.default_rng(seed)
    for variable in model.sequence_head.trainable_variables:
        variable.assign(draw.normal(size=variable.shape))
    return model


def small_classifier(labels: Any = ("no", "yes", "perhaps"), **kwargs: Any) -> Classifier:
    """A classifier, of three classes unless told otherwise."""
    return small_model(Classifier, labels, **kwargs)


def small_regressor(**kwargs: Any) -> Regressor:
    """A regressor."""
    return small_model(Regressor, **kwargs)


def small_multi_label_classifier(
    labels: Any = ("joy", "anger", "love"), **kwargs: Any
) -> MultiLabelClassifier:
    """A classifier of three independent labels unless told otherwise."""
    return small_model(MultiLabelClassifier, labels, **kwargs)


def small_multiple_choice(**kwargs: Any) -> MultipleChoice:
    """A chooser."""
    return small_model(MultipleChoice, **kwargs)


def small_embedder(seed: int = 7, **kwargs: Any) -> TextEmbedder:
    """An embedder of texts of at most 24 tokens."""
    random.seed(seed)  # which Keras takes its seeds from
    encoder = small_encoder(**{k: kwargs[k] for k in kwargs if k == "dtype"})
    return TextEmbedder(encoder, TOKENIZER, **{"max_sequence_length": 24, **kwargs})


def small_reader(model_class: Any, *arguments: Any, seed: int = 7, **kwargs: Any) -> Any:
    """A model that reads windows of at most 24 tokens, of which neighbours share 4."""
    random.seed(seed)  # which Keras takes its seeds from
    encoder = small_encoder(**{k: kwargs[k] for k in kwargs if k == "dtype"})
    kwargs = {"max_sequence_length": 24, "stride": 4, **kwargs}
    model = model_class(encoder, TOKENIZER, *arguments, **kwargs)
    draw = np.random.default_rng(seed)
    for layer in model.head_layers().values():
        for variable in layer.trainable_variables:
            variable.assign(draw.normal(size=variable.shape))
    return model


def small_question_answerer(**kwargs: Any) -> QuestionAnswerer:
    """An answerer of questions of at most 6 tokens."""
    return small_reader(QuestionAnswerer, **{"max_question_length": 6, **kwargs})


def small_span_tagger(**kwargs: Any) -> SpanTagger:
    """A reader by tags, of questions of at most 6 tokens."""
    return small_reader(SpanTagger, **{"max_question_length": 6, "dropout": 0.0, **kwargs})


def small_entity_recognizer(labels: Any = TAGS, **kwargs: Any) -> EntityRecognizer:
    """A recognizer of persons and places unless told otherwise."""
    return small_reader(EntityRecognizer, labels, **{"dropout": 0.0, **kwargs})


@cache
def special_tokenizer() -> WordPiece:
    """The tokenizer that reads [MASK] as [MASK]."""
    return WordPiece(VOCABULARY, special_tokens_in_text=True)


def small_masked_language_model(
    objective: str = "mlm_nsp", seed: int = 7, **kwargs: Any
) -> MaskedLanguageModel:
    """A pretrained model in windows of at most 24 tokens, of which neighbours share 4."""
    random.seed(seed)  # which Keras takes its seeds from
    typed = {key: kwargs[key] for key in kwargs if key == "dtype"}
    encoder = small_encoder(causal=objective.startswith("lm"), **typed)
    kwargs = {"max_sequence_length": 24, "stride": 4, **kwargs}
    return MaskedLanguageModel(encoder, special_tokenizer(), objective, **kwargs)


def computed(model: Any, x: Any) -> np.ndarray:
    """What a model makes of texts, pairs or choices, without the time that `predict` traces."""
    tensors = [text_tensor((x if isinstance(x, tuple) else (x,))[0])]
    if isinstance(x, tuple) and isinstance(x[1][0], list):
        tensors.append(keras.ops.stack([text_tensor(choices) for choices in x[1]]))
    elif isinstance(x, tuple):
        tensors.append(text_tensor(x[1]))
    inputs = model_inputs(model.preprocess(*tensors))
    return np.asarray(model.scores(inputs) if hasattr(model, "scores") else model(inputs))


def random_texts(count: int, seed: int = 0, longest: int = 30) -> list[str]:
    """Texts of 0 to `longest` words and word parts."""
    draw = np.random.default_rng(seed)
    words = ["a", "the", "film", "good", "bad", "very", "goodness", "!", "xy", "Q"]
    return [" ".join(draw.choice(words, draw.integers(0, longest + 1))) for _ in range(count)]


def with_fusion(model: Any, names: tuple[str, ...] = ("one", "two")) -> Any:
    """The model with an active fusion of adapters, whose weights differ by token."""
    for number, name in enumerate(names):
        model.encoder.add_adapter(name, {"kind": "pfeiffer", "adapter_dim": 3})
        parts = model.encoder.adapters.parts[name].blocks
        for weight in (weight for part in parts for weight in part.weights):
            weight.assign(np.random.default_rng(number).normal(size=weight.shape))
    model.encoder.add_adapter_fusion(names)
    model.encoder.train_adapter(names)
    for part in model.encoder.adapters.fusions["+".join(names)].blocks:
        for layer in (part.query, part.key):
            layer.kernel.assign(np.random.default_rng(9).normal(0.0, 0.1, layer.kernel.shape))
    return model
