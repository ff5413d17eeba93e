"""Named-entity recognition: a text of any length in, entities with their offsets out."""

import os
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.data.batches.windowed_examples import WindowedExamples
from kbert.models.encoder import Encoder
from kbert.optimization.sequence_losses import ABSENT
from kbert.pipelines.saved_pipeline import load_pipeline
from kbert.pipelines.signatures import Signature, label_maps, text_specs
from kbert.pipelines.text_inputs import read_single_texts
from kbert.tasks.answers import plain_values
from kbert.tasks.ner.head import TokenClassification
from kbert.tasks.ner.task import TASK
from kbert.tasks.ner.token_tagging import TokenTagging, WordInputs, owned_targets, read_word_inputs
from kbert.text.sequences.entities import entity_types, unreachable_tags
from kbert.text.sequences.word_boundaries import spaced_words, text_words
from kbert.text.tokenizer import Tokenizer

_NOTHING = "O"


@keras.saving.register_keras_serializable("kbert")
class EntityRecognizer(TokenClassification):
    """Finds the named entities of texts.

    A word's first token carries its tag; the others, "X" in the paper, have no loss (Devlin et
    al. 2019, section 5.3). The text is cut into overlapping windows; see
    `kbert.text.sequences.packing`. `x` in `fit` is lists of words, in `predict` texts, for each of
    which it returns a dict, with what `recognize` returns as NumPy values. `y` has a list of tags,
    one a word, for each list of words.

    Args:
        encoder: an encoder such as `Bert`.
        tokenizer: the tokenizer of the encoder's vocabulary.
        labels: the C tags, "O" among them, BIO ("B-PER", "I-PER") or IOBES.
        max_sequence_length: tokens of a window, special ones included.
        stride: tokens that neighbouring windows share.
        dropout: rate of the dropout before the head.
        strict_tags: whether an entity begins with B-, as in IOB2. If not, BIO tags are read as
            IOB1 has them too: an I- behind another type or behind O begins one. By default False of
            Hugging Face's heads, which do not say what they have learned, and True of all others.

    Raises:
        ValueError: `labels` are not valid tags, or tokenizer or sizes do not fit the encoder or
            each other.
    """

    arguments = ("labels", "max_sequence_length", "stride", "dropout", "strict_tags")
    batching_type = TokenTagging
    needs_pooler = False
    has_questions = False
    tokenizer_rules = {"trim_offsets": True}
    huggingface_architecture = "BertForTokenClassification"
    graph_settings: tuple[str, ...] = ("strict_tags",)

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        max_sequence_length: int = 128,
        stride: int = 32,
        dropout: float = 0.1,
        strict_tags: bool = True,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "entity_recognizer")
        tags = _checked_tags(labels, strict_tags)
        self.strict_tags = strict_tags
        if not getattr(tokenizer, "trim_offsets", True):
            raise ValueError(
                "`tokenizer` must have trim_offsets=True for entities: a space before a word is no "
                "part of it. Received: trim_offsets=False"
            )
        super().__init__(encoder, len(tags), dropout, **kwargs)
        self.tokenizer = tokenizer
        self.tag_names = tuple(tags)
        self.max_sequence_length = max_sequence_length
        self.stride = stride
        self.batching.check()

    @property
    def labels(self) -> list[str]:
        """The tags, in the order of the logits."""
        return list(self.tag_names)

    @classmethod
    def from_pretrained(
        cls,
        name_or_directory: str | os.PathLike[str],
        labels: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> "EntityRecognizer":
        """Loads a saved model, or puts a new head on an encoder.

        Args:
            name_or_directory: a known name ("bert-base-uncased", "all-MiniLM-L6-v2", ...), an
                `org/name` of the Hugging Face hub, or a directory with a checkpoint; one with a
                head for token classification (kbert's or Hugging Face's) yields a model that is
                ready to use.
            labels: the tags; needed where there is no head.
            **kwargs: arguments of the constructor, or of `Bert`; or `from_other_task=True`, to take
                the encoder of another task's model, with a new head.
        """
        return load_pipeline(cls, name_or_directory, labels=labels, **kwargs)

    @classmethod
    def default_settings(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        """Returns `strict_tags` for a `checkpoint` of Hugging Face, whose head may be of IOB1."""
        is_theirs = not checkpoint.pipeline and "classifier.weight" in checkpoint.heads
        return {"strict_tags": False} if is_theirs else {}

    def huggingface_config(self) -> dict[str, Any]:
        """Returns the task's entries of a Hugging Face configuration."""
        return {**label_maps(self.tag_names), "classifier_dropout": self.dropout}

    def recognize(self, text: Any) -> dict[str, Any]:
        """Finds the entities of raw strings (B,), as graph code.

        Words are those of `kbert.text.sequences.word_boundaries.text_words`.

        Args:
            text: string (B,).

        Returns:
            `entity`, `label` string, `score` float32, the mean probability of its words' tags,
            `start`, `end` int32, code points of the text, `start_byte`, `end_byte` int32; each
            (B, k), in the order of the text, padded with "" and 0 to the most entities of a
            text. `count` int32 (B,), the entities of each text.
        """
        offsets = self.tokenizer.tokenize_with_offsets(text)
        units = text_words(offsets, self.tokenizer.vocabulary)
        probabilities = self.batching.token_probabilities(offsets, None)
        found = self.batching.tag_words(text, offsets, units, probabilities)
        types = tf.constant(entity_types(self.tag_names) or [""])
        filled = tf.sequence_mask(found.count)
        places = found.texts._asdict()
        return {
            "entity": places.pop("text"),
            "label": tf.where(filled, tf.gather(types, found.kind), ""),
            "score": found.score,
            **places,
            "count": found.count,
        }

    def tag(self, text: Any) -> dict[str, Any]:
        """Tags sentences (B,) whose words are separated by single spaces, as graph code.

        Data sets with given words are evaluated this way.

        Args:
            text: string (B,).

        Returns:
            `tags` string (B, k), padded with "" to the most words; `count` int32 (B,).
        """
        offsets = self.tokenizer.tokenize_with_offsets(text)
        units, number = spaced_words(text, offsets)
        probabilities = self.batching.token_probabilities(offsets, None)
        found = self.batching.tag_words(text, offsets, units, probabilities)
        words = tf.cast(tf.strings.split(text, " ").row_lengths(), tf.int32)
        width = tf.reduce_max(tf.pad(words, [[0, 1]]))
        tags = tf.gather(tf.constant(self.labels), found.path)
        # Words without tokens, such as control characters alone, are no part of an entity.
        cells = tf.stack([tf.cast(number.value_rowids(), tf.int32), number.values], axis=1)
        real = tf.sequence_mask(tf.cast(units.first.row_lengths(), tf.int32), tf.shape(tags)[1])
        blank = tf.where(tf.sequence_mask(words, width), _NOTHING, "")
        filled = tf.tensor_scatter_nd_update(blank, cells, tf.boolean_mask(tags, real))
        return {"tags": filled, "count": words}

    def signatures(self) -> dict[str, Signature]:
        """Returns the functions of an export and the specs of their inputs."""
        return {
            "serving_default": (self.recognize, text_specs(False)),
            "words": (self.tag, text_specs(False)),
        }

    def answers(self, x: Any) -> list[list[dict[str, Any]]]:
        """Returns the entities of each text as plain Python values.

        Args:
            x: texts, a list or array of str.

        Returns:
            For each text a list of dicts: `entity`, `label`, `score` and the offsets.
        """
        return [TASK.json_answer(plain_values(row))["entities"] for row in self.predict(x)]

    def text_columns(self, x: Any) -> list[Any] | None:
        """Returns the columns of `x` that `recognize` takes; None if it is something else.

        Args:
            x: raw texts in the forms of `predict`, or anything else.
        """
        if isinstance(x, list | tuple) and x and isinstance(x[0], list | tuple):
            raise ValueError(
                "`x` must be texts; `predict_tags` takes sentences of words. "
                f"Received: {x[0]!r:.80} as the first"
            )
        texts = read_single_texts(x)
        return None if texts is None else [texts]

    def predict_tags(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Returns the tags of sentences of given words.

        Args:
            sentences: n lists of words.
        """
        inputs = read_word_inputs(sentences)
        if inputs is None:
            raise ValueError("`sentences` must be lists of words. Received: something else")
        rows = self.batching.predict_columns(self.tag, [inputs.texts])
        # By the words: a sentence of none is a text of one word without characters.
        counted = zip(rows, inputs.words, strict=True)
        return [[tag.decode() for tag in row["tags"][: len(words)]] for row, words in counted]

    def read_inputs(self, x: Any) -> WordInputs | None:
        """Reads `x` as sentences of words; returns None if it is something else.

        Args:
            x: n lists of words, a table with a column of such, or anything else.
        """
        return read_word_inputs(x)

    def examples(self, inputs: WordInputs, y: Any) -> tuple[WindowedExamples, np.ndarray]:
        """Returns windows to train on, and the tag of each of their tokens.

        Every first token of a word counts in exactly one window, the one that owns it.

        Args:
            inputs: n sentences.
            y: the tags of each sentence's words.

        Returns:
            `WindowedExamples`, and int32, a tag id a token of `packed`, -1 where it has no loss.
        """
        windows = self.batching.windows(inputs.texts)

        def tags_of(row: int) -> np.ndarray:
            starts, _ = windows.places.of(int(windows.context[row]))
            return self._token_tags(starts, inputs.word_starts(row), row, y[row])

        unknown = np.full(windows.packed.tokens, ABSENT, "int32")
        return windows, owned_targets(windows, unknown, tags_of)

    def _token_tags(self, starts: np.ndarray, words: np.ndarray, row: int, tags: Any) -> np.ndarray:
        """Returns the tag ids of a sentence's tokens, -1 except for the first of each word."""
        ids = {name: number for number, name in enumerate(self.tag_names)}
        if len(words) != len(tags):
            raise ValueError(
                f"`y[{row}]` must have a tag for each of the {len(words)} words. "
                f"Received: {len(tags)}"
            )
        unknown = sorted(set(tags) - set(ids))
        if unknown:
            raise ValueError(f"`y[{row}]` must hold tags of {self.labels}. Received: {unknown}")
        word = np.searchsorted(words, starts, side="right") - 1
        first = np.flatnonzero(np.diff(word, prepend=-1))
        found = np.full(len(starts), ABSENT, "int32")
        found[first] = np.array([ids[tag] for tag in tags], "int32")[word[first]]
        return found


def _checked_tags(labels: Sequence[str], strict: bool) -> list[str]:
    tags = [str(label) for label in labels]
    good = [tag == _NOTHING or (tag[:2] in ("B-", "I-", "E-", "S-") and tag[2:]) for tag in tags]
    if _NOTHING not in tags or len(set(tags)) < len(tags) or not all(good):
        raise ValueError(
            '`labels` must be different tags, "O" and such as "B-PER" and "I-PER". '
            f"Received: labels={tags}"
        )
    unreachable = unreachable_tags(tags, strict)
    if unreachable:
        raise ValueError(
            "`labels` must be such that each tag can stand in a sentence: B- before I-, and E- "
            f"behind B- where there is E- or S-. Received: labels={tags}, of which "
            f"{', '.join(unreachable)} cannot"
        )
    return tags
