"""Pretrained models on raw text: the likeliest words for each [MASK] of a text of any length.

Shapes: B texts, M the most [MASK] of a text, K words for each, D hidden size.
"""

from typing import Any

import keras
import tensorflow as tf

from kbert.architectures import encoder_layout
from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.encoder_layout import CAUSAL
from kbert.models.encoder import Encoder
from kbert.pipelines.batching import holds_texts
from kbert.pipelines.inference import map_side_by_side, packed_chunks
from kbert.pipelines.signatures import Signature, model_inputs, text_specs
from kbert.pipelines.text_inputs import read_single_texts
from kbert.pipelines.window_batching import WindowBatching
from kbert.tasks.answers import plain_values
from kbert.tasks.pretraining.head import Pretraining
from kbert.tasks.pretraining.task import ARCHITECTURES, TASK
from kbert.text.graph_functions import map_in_chunks
from kbert.text.sequences.masking import filled
from kbert.text.sequences.packing import cut_windows, lay_out, pack
from kbert.text.tokenizer import Tokenizer, TokenOffsets

# [MASK] tokens with logits in memory at a time: a row of logits is a hundred kilobytes.
_MASKS_AT_A_TIME = 256


@keras.saving.register_keras_serializable("kbert")
class MaskedLanguageModel(Pretraining):
    """Fills the [MASK] of texts with their likeliest words.

    A text is cut into overlapping windows, of which only those with a [MASK] are read; see
    `kbert.text.sequences.packing`. A causal model sees only the text to the left of a [MASK]. The
    model trains on the batches of `kbert.data.pretraining.dataset`. `predict` returns a dict a
    text, with what `fill` returns as NumPy values.

    Args:
        encoder: an encoder such as `Bert`.
        tokenizer: the tokenizer of the encoder's vocabulary, with `special_tokens_in_text`.
        objective: what it was pretrained for, see `Pretraining`.
        max_sequence_length: tokens of a window, special ones included.
        stride: tokens that neighbouring windows share.
        nbest: K, words for each [MASK], best first.
        tied: whether the output matrix is the encoder's embedding table; see `Pretraining`.

    Raises:
        ValueError: tokenizer or sizes do not fit the encoder or each other, or `nbest` is not in
            the vocabulary's range.
    """

    formats = ("kbert", "huggingface", "tf1")  # google-research/bert has these heads too
    head_names = ("cls.",)
    head_may_be_partial = True
    tokenizer_rules = {"special_tokens_in_text": True}
    arguments = ("objective", "max_sequence_length", "stride", "nbest")
    batching_type = WindowBatching
    needs_pooler = False
    has_questions = False
    graph_settings = ("nbest",)

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer,
        objective: str = "mlm_nsp",
        max_sequence_length: int = 128,
        stride: int = 32,
        nbest: int = 5,
        tied: bool = True,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "masked_language_model")
        super().__init__(encoder, objective, tied, **kwargs)
        self.tokenizer = tokenizer
        self.max_sequence_length = max_sequence_length
        self.stride = stride
        self.nbest = nbest
        self.huggingface_architecture = "BertLMHeadModel" if encoder.causal else "BertForMaskedLM"
        if objective == "mlm_nsp":
            self.huggingface_architecture = "BertForPreTraining"
        self._check_tokenizer()
        self.batching.check()

    def _check_tokenizer(self) -> None:
        """Raises a ValueError if texts cannot hold [MASK], or `nbest` is out of range."""
        vocabulary = self.tokenizer.vocabulary
        mask = vocabulary.special_tokens.mask
        if not self.tokenizer.special_tokens_in_text or not vocabulary.has_mask:
            raise ValueError(
                f"`tokenizer` must have special_tokens_in_text=True and {mask} in its vocabulary. "
                f"Received: special_tokens_in_text={self.tokenizer.special_tokens_in_text}, "
                f"{'with' if vocabulary.has_mask else 'without'} {mask}"
            )
        if not 1 <= self.nbest <= len(vocabulary):
            raise ValueError(
                f"`nbest` must be in [1, {len(vocabulary)}], the vocabulary. "
                f"Received: nbest={self.nbest}"
            )

    @classmethod
    def default_settings(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        """Returns the objective that the heads and the encoder of `checkpoint` come from."""
        objective = "lm" if checkpoint.config.get(CAUSAL) else "mlm"
        tokens_alone = "cls.predictions.bias" in checkpoint.heads and not any(
            name.startswith("cls.seq_relationship.") for name in checkpoint.heads
        )
        tokens_alone = tokens_alone or not encoder_layout(checkpoint.architecture).pooler
        untied = {"tied": False} if "cls.predictions.decoder.weight" in checkpoint.heads else {}
        return {"objective": objective if tokens_alone else f"{objective}_nsp", **untied}

    @classmethod
    def huggingface_architectures(cls) -> tuple[str, ...]:
        """Returns the classes of transformers whose heads can be loaded."""
        return ARCHITECTURES

    def huggingface_config(self) -> dict[str, Any]:
        """Returns the task's entries of a Hugging Face configuration: none."""
        return {}

    def fill(self, text: Any) -> dict[str, Any]:
        """Finds words for the [MASK] of raw strings (B,), as graph code.

        Probabilities are over the whole vocabulary, for each [MASK] independently.

        Args:
            text: string (B,).

        Returns:
            `filled` string (B,), the text with the best word instead of each [MASK]; `word`
            string and `score` float32 (B, M, K), words or pieces of words (with the space before
            them, if tokens are bytes) with their probabilities, best first; `start`, `end` int32
            (B, M), code points of each [MASK], `start_byte`, `end_byte` int32; padded with "" and 0
            to the most of a text.
            `count` int32 (B,), the [MASK] of each text, which may be none.
        """
        offsets = self.tokenizer.tokenize_with_offsets(text)
        place, states = self._masked_states(offsets)
        ids, scores = self._likeliest(states)
        row = tf.gather(offsets.token_ids.value_rowids(), place)
        rows = offsets.token_ids.nrows()

        def by_text(values: tf.Tensor, *inner: int) -> tf.Tensor:
            ragged = tf.RaggedTensor.from_value_rowids(values, row, rows)
            return ragged.to_tensor(shape=(None, None, *inner))

        words = tf.gather(tf.constant(self._words()), ids)  # (M of all, K)
        best = tf.RaggedTensor.from_value_rowids(words[:, 0], row, rows)
        places = {
            name: by_text(tf.gather(getattr(offsets, name).values, place))
            for name in ("start", "end", "start_byte", "end_byte")
        }
        return {
            "filled": filled(text, best, self.tokenizer.vocabulary.special_tokens),
            "word": by_text(words, self.nbest),
            "score": by_text(scores, self.nbest),
            **places,
            "count": tf.cast(best.row_lengths(), tf.int32),
        }

    def _words(self) -> list[str]:
        """Returns how each token is shown: with "##" or, if tokens are bytes, a space before it."""
        vocabulary = self.tokenizer.vocabulary
        if not vocabulary.special_tokens.byte_level:
            return list(vocabulary.tokens)
        return [vocabulary.text_of(token) for token in vocabulary.tokens]

    def _masked_states(self, offsets: TokenOffsets) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns each [MASK]'s index among the tokens of all texts, and the state predicting it.

        Returns:
            int32 (M of all texts,), ascending, and float32 (M of all texts, D).
        """
        tokens, vocabulary = offsets.token_ids, self.tokenizer.vocabulary
        windows = cut_windows(tokens.row_lengths(), None, self.max_sequence_length, self.stride)
        starts = tf.cast(tokens.row_starts(), tf.int32)
        is_mask = tf.equal(tokens.values, vocabulary.mask_id)
        before = tf.concat([[0], tf.cumsum(tf.cast(is_mask, tf.int32))], axis=0)
        start = tf.gather(starts, windows.row)
        own = tf.gather(before, start + windows.owned_to)
        own -= tf.gather(before, start + windows.owned_from)
        windows = windows.take(tf.cast(tf.where(own > 0)[:, 0], tf.int32))
        shift = 1 if self.encoder.causal else 0  # there the previous token predicts it

        def run(chosen: tf.Tensor) -> list[tf.Tensor]:
            some = windows.take(chosen)
            laid = lay_out(some, tokens, None, vocabulary)
            states = self.encoder(model_inputs(laid), training=False)["sequence_output"]
            here = tf.where(laid.owned & tf.equal(laid.token_ids, vocabulary.mask_id))
            place = tf.gather(starts, some.row)[:, tf.newaxis] + laid.position
            found = tf.gather_nd(states, here - tf.constant([0, shift], tf.int64))
            return [tf.gather_nd(place, here), tf.cast(found, tf.float32)]

        outputs = [
            tf.TensorSpec((None,), tf.int32),
            tf.TensorSpec((None, self.encoder.hidden_dim), tf.float32),
        ]
        cells = self.batching.chunk_tokens
        place, states = map_side_by_side(run, windows.lengths, cells, outputs)
        order = tf.argsort(place)
        return tf.gather(place, order), tf.gather(states, order)

    def _likeliest(self, states: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Maps states float32 (n, D) to ids int32 (n, K) and probabilities float32 (n, K)."""
        known = len(self.tokenizer.vocabulary)  # the table may have rows without a token

        def run(chosen: tf.Tensor) -> list[tf.Tensor]:
            logits = self.token_logits(tf.cast(tf.gather(states, chosen), self.compute_dtype))
            scores, ids = tf.math.top_k(tf.nn.softmax(logits, axis=-1)[:, :known], self.nbest)
            return [ids, tf.cast(scores, tf.float32)]

        outputs = [tf.TensorSpec((None, self.nbest), dtype) for dtype in (tf.int32, tf.float32)]
        lengths = tf.ones_like(states[:, 0], tf.int32)  # all alike: the order stays
        ids, scores = map_in_chunks(run, lengths, _MASKS_AT_A_TIME, outputs)
        return ids, scores

    def follows(self, text_a: Any, text_b: Any) -> dict[str, Any]:
        """Predicts whether the second text of pairs (B,) follows the first, as graph code.

        Args:
            text_a: string (B,).
            text_b: string (B,).

        Returns:
            `score` float32 (B,), the probability that it follows, and `truncated` bool (B,).
        """
        vocabulary, length = self.tokenizer.vocabulary, self.max_sequence_length
        packed = pack([self.tokenizer.tokenize(t) for t in (text_a, text_b)], vocabulary, length)

        def run(inputs: dict[str, Any]) -> tf.Tensor:
            pooled = self.encoder(inputs, training=False)["pooled_output"]
            return tf.nn.softmax(self.pair_logits(pooled), axis=-1)

        return {"score": packed_chunks(run, packed, 2)[:, 0], "truncated": packed.truncated}

    def signatures(self) -> dict[str, Signature]:
        """Returns the functions of an export and the specs of their inputs."""
        signatures: dict[str, Signature] = {"serving_default": (self.fill, text_specs(False))}
        if self.learns_pairs:
            signatures["follows"] = (self.follows, text_specs(True))
        return signatures

    def text_columns(self, x: Any) -> list[Any] | None:
        """Returns the columns of `x` that `fill` takes; None if it is something else.

        Args:
            x: raw texts in the forms of `predict`, or anything else.
        """
        texts = read_single_texts(x)
        return None if texts is None else [texts]

    def answers(self, x: Any) -> list[dict[str, Any]]:
        """Returns the words for the [MASK] of texts as plain Python values.

        Args:
            x: texts, a list or array of str.

        Returns:
            For each text `filled`, and `masks`, a dict for each [MASK]: `words`, each with `word`
            and `score`, and its offsets. A text without [MASK] has none.
        """
        return [TASK.json_answer(plain_values(row)) for row in self.predict(x)]

    def read_inputs(self, x: Any) -> None:
        """Returns None, since it trains on prepared batches; `x` is anything but texts.

        Raises:
            ValueError: `x` is texts.
        """
        if holds_texts(x):
            raise ValueError(
                "`x` must be batches of `kbert.data.pretraining.dataset`, which makes them from "
                "text. Received: texts"
            )
