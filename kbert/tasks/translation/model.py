"""Translation: raw text in one language in, raw text in another out.

Shapes: B rows, S source pieces, T target pieces, n translations a row.
"""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.checkpoints.marian_files import read_marian
from kbert.checkpoints.pretrained import resolve
from kbert.checkpoints.read_checkpoint import is_marian
from kbert.checkpoints.translation_folder import read_translation, write_translation
from kbert.data.batches.packed_examples import text_tensor
from kbert.data.batches.plans import size_batches
from kbert.decoding.scores import check_beam
from kbert.decoding.scores import length_penalty as penalty_of
from kbert.decoding.search import Hypotheses, best_sequences
from kbert.decoding.shortlist import Shortlist
from kbert.models.encoder_decoders.encoder_decoder import EncoderDecoder
from kbert.optimization.steps import adapter_states
from kbert.pipelines.signatures import Signature, text_specs
from kbert.pipelines.text_inputs import listed, read_single_texts
from kbert.tasks.answers import plain_values
from kbert.tasks.translation.alignment import aligned_translations, check_layer
from kbert.tasks.translation.batching import PairBatching, SourceChunks
from kbert.tasks.translation.head import Translation
from kbert.tasks.translation.saved_translator import translation_checkpoint, translator_from
from kbert.tasks.translation.shortlist import search_steps, shortlist_of_texts
from kbert.tasks.translation.task import TASK
from kbert.text.graph_functions import cached_graph
from kbert.text.sequences.packing import pack
from kbert.text.subword import Subword
from kbert.text.tokenizer import Tokenizer

# Sentences per call of the graph.
_ROWS_AT_A_TIME = 1024
# Settings that a search depends on, besides the weights.
_LENGTHS = ("length_ratio", "length_extra")
_SEARCH = ("beam_size", "length_penalty", "alpha", "nbest", *_LENGTHS, "patience")


@keras.saving.register_keras_serializable("kbert")
class Translator(Translation):
    """Translates texts.

    `x` in `fit` is sentences, with their translations as `y`, or a table with `source` and
    `target`; in `predict` it is texts, whose translations are returned as a list of str.

    Args:
        transformer: an `EncoderDecoder`, such as a `Transformer` or a `BertFusedTransformer`.
        source_subwords: the subwords of the source.
        target_subwords: the subwords of the target; None for those of the source.
        bert_tokenizer: the tokenizer of a fused model's BERT; None for other models.
        beam_size: hypotheses of the search; 1 is greedy search.
        length_penalty: "gnmt" or "power", see `kbert.decoding.scores`.
        alpha: the penalty's exponent.
        nbest: number of translations that are returned.
        length_ratio: a translation has at most this many times the source's pieces,
        length_extra: plus this many.
        patience: see `kbert.decoding.search.beam_search`.
        label_smoothing: label smoothing of the loss.
        alignment_layer: the layer whose attention `align` returns; see
            `kbert.tasks.translation.alignment`.
        shortlist: the pieces that a search may take; None for all. See `learn_shortlist`.

    Raises:
        ValueError: a vocabulary does not fit the model, or a number is out of its range.
    """

    batching_type = PairBatching
    arguments = (*_SEARCH, "label_smoothing", "alignment_layer")

    def __init__(
        self,
        transformer: EncoderDecoder,
        source_subwords: Subword,
        target_subwords: Subword | None,
        bert_tokenizer: Tokenizer | None = None,
        beam_size: int = 5,
        length_penalty: str = "power",
        alpha: float = 1.0,
        nbest: int = 1,
        length_ratio: float = 2.0,
        length_extra: int = 10,
        patience: float | None = None,
        label_smoothing: float = 0.1,
        alignment_layer: int | None = -1,
        shortlist: Shortlist | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "translator")
        super().__init__(transformer, label_smoothing, **kwargs)
        self.source_subwords = source_subwords
        self.target_subwords = source_subwords if target_subwords is None else target_subwords
        self.bert_tokenizer = bert_tokenizer
        self.beam_size = beam_size
        self.length_penalty = length_penalty
        self.alpha = alpha
        self.nbest = nbest
        self.length_ratio = length_ratio
        self.length_extra = length_extra
        self.patience = patience
        self.alignment_layer = alignment_layer
        self.shortlist = shortlist
        self._check()
        check_layer(self)

    def _check(self) -> None:
        penalty_of(self.length_penalty, self.alpha)
        check_beam(self.beam_size, self.nbest)
        for name in _LENGTHS:
            number = getattr(self, name)
            if not (number >= 0 and math.isfinite(number)):
                raise ValueError(
                    f"`{name}` must be a finite number, at least 0. Received: {name}={number}"
                )
        if self.patience is not None and not self.patience > 0:
            raise ValueError(
                f"`patience` must be positive or None. Received: patience={self.patience}"
            )
        source_size = self.transformer.source_vocabulary_size or self.transformer.vocabulary_size
        for name, subwords, size in (
            ("source_subwords", self.source_subwords, source_size),
            ("target_subwords", self.target_subwords, self.transformer.vocabulary_size),
        ):
            if len(subwords) != size:
                raise ValueError(
                    f"`{name}` must have as many pieces as the transformer has embeddings, "
                    f"{size}. Received: {len(subwords)}"
                )
        if (self.bert_tokenizer is None) != (self.transformer.bert is None):
            raise ValueError(
                "`bert_tokenizer` must be given for a fused transformer, and for no other. "
                f"Received: bert_tokenizer={self.bert_tokenizer}"
            )

    @classmethod
    def from_pretrained(cls, name_or_directory: str | os.PathLike[str], **kwargs: Any) -> Any:
        """Loads a saved translator.

        Args:
            name_or_directory: a folder of `save_pretrained`, or of a Marian model in Hugging Face's
                layout, see `kbert.checkpoints.marian_files`; or `org/name` of the Hugging Face hub.
            **kwargs: `dtype`, or settings such as `beam_size`, instead of the saved ones.

        Raises:
            ValueError: a file is damaged, or kbert cannot hold the model.
            FileNotFoundError: a file is missing.
            OSError: the hub cannot be reached.
        """
        folder = resolve(name_or_directory)
        read = read_marian if is_marian(folder) else read_translation
        return translator_from(cls, read(folder), **kwargs)

    def save_pretrained(
        self, directory: str | os.PathLike[str], format: str = "kbert", overwrite: bool = False
    ) -> Path:
        """Writes weights, subwords and settings for `from_pretrained`.

        Args:
            directory: the folder to create.
            format: "kbert", the only one.
            overwrite: whether an existing folder may be replaced, with all that it holds.

        Returns:
            The folder.

        Raises:
            ValueError: `format` is another one.
            FileExistsError: the folder exists, and may not be replaced.
        """
        if format != "kbert":
            raise ValueError(
                f'`format` must be "kbert" for a translator. Received: format={format!r}'
            )
        return write_translation(translation_checkpoint(self), directory, overwrite)

    @property
    def max_source_length(self) -> int:
        """The most pieces of a source, the end token included."""
        return int(self.transformer.max_sequence_length)

    def source_inputs(self, text: Any) -> tuple[dict[str, Any], Any, Any]:
        """Tokenizes raw strings (B,) for the encoder, as graph code.

        Args:
            text: string (B,).

        Returns:
            The inputs of `Transformer.encode`; int32 (B,), lengths with the end token; bool (B,),
            whether a text was truncated.
        """
        most = self.max_source_length - 1
        begun, is_longer = self.source_subwords.beginnings(text, most + 1)
        pieces = self.source_subwords.tokenize(begun)
        truncated = is_longer | (pieces.row_lengths() > most)
        counts = tf.minimum(tf.cast(pieces.row_lengths(), tf.int32), most)
        lengths = counts + 1
        # A ragged concatenation would check at run time that both sides have as many rows.
        mask = tf.sequence_mask(lengths)
        width = tf.shape(mask)[1]
        padding = self.source_subwords.padding_id
        ids = tf.pad(pieces.to_tensor(padding), ((0, 0), (0, 1)), constant_values=padding)
        is_end = tf.range(width) == counts[:, tf.newaxis]
        inputs = {
            "source_token_ids": tf.where(is_end, self.source_subwords.end_id, ids[:, :width]),
            "source_padding_mask": mask,
        }
        return inputs, lengths, truncated

    def search(self, inputs: dict[str, Any], lengths: Any) -> Hypotheses:
        """Searches the best translations of tokenized sources, as graph code.

        Args:
            inputs: the inputs of `Transformer.encode`.
            lengths: int32 (B,), pieces of each source, the end token included.
        """
        memory = self.transformer.encode(inputs)
        state = self.transformer.start_decoding(memory, self.beam_size)
        step, state, candidates = search_steps(self, inputs, state)
        most = self.length_ratio * tf.cast(lengths, tf.float32) + float(self.length_extra)
        # Bounded as numbers with a fraction, which do not overflow.
        longest = float(self.transformer.max_sequence_length)
        limits = tf.cast(tf.clip_by_value(most, 1.0, longest), tf.int32)
        ends = {
            "start_id": self.target_subwords.start_id,
            "end_id": self.target_subwords.end_id,
            "max_lengths": limits,
            "candidates": candidates,
        }
        sizes = {name: getattr(self, name) for name in ("beam_size", "nbest", "patience")}
        sizes["length_penalty"] = penalty_of(self.length_penalty, self.alpha)
        return best_sequences(step, state, tf.shape(lengths)[0], **sizes, **ends)

    def translate(self, text: Any) -> dict[str, Any]:
        """Translates raw strings (B,), as graph code.

        Texts of similar length are translated together, a bounded number at a time; no text's
        translation depends on the others.

        Args:
            text: string (B,).

        Returns:
            `translation` string (B,), `score` float32 (B,), its log-probability divided by the
            length penalty; `nbest_translation` string and `nbest_score` (B, n), best first;
            `truncated` bool (B,), whether the source was cut, for BERT too. An empty text, or one
            of white space, has an empty translation and score 0.
        """
        sources = SourceChunks(self, text)

        def run(chosen: tf.Tensor) -> Sequence[tf.Tensor]:
            found = self.search(*sources.take(chosen))
            texts = self.target_subwords.detokenize(found.token_ids, found.lengths)
            return texts, found.scores

        specs = [tf.TensorSpec((None, self.nbest), t) for t in (tf.string, tf.float32)]
        texts, scores = sources.map(run, specs)
        back = sources.places
        empty = (sources.lengths == 1)[:, None]
        texts = tf.where(empty, "", tf.gather(texts, back))
        scores = tf.where(empty, 0.0, tf.gather(scores, back))
        return {
            "translation": texts[:, 0],
            "score": scores[:, 0],
            "nbest_translation": texts,
            "nbest_score": scores,
            "truncated": sources.truncated,
        }

    def align(self, text: Any) -> dict[str, Any]:
        """Translates raw strings (B,), and aligns the translations with them, as graph code.

        The best translation is found as in `translate`, and then passed through the decoder once
        more. No row depends on the others. The output has B T S numbers: one long text among many
        short ones makes it large. `kbert.tasks.translation.alignment` has the sources.

        Args:
            text: string (B,).

        Returns:
            `translation` string (B,), `score` float32 (B,) and `truncated` bool (B,), as
            `translate` returns. `source_tokens` string (B, S) and `target_tokens` string (B, T),
            the pieces of both with the end tokens, padded with ""; `source_lengths` and
            `target_lengths` int32 (B,), how many of them are real. `alignment` float32 (B, T, S):
            the row of each real target piece sums to 1 over the real pieces of the source; the rest
            is 0. An empty text has no target pieces, and only the end token as source.

        Raises:
            ValueError: the model has no attention to the source.
        """
        return aligned_translations(self, text)

    def learn_shortlist(
        self, sources: Sequence[Any], targets: Sequence[Any], **numbers: int
    ) -> Shortlist:
        """Lets the search take only pieces that translate one of the source; the rest is sooner.

        Args:
            sources: n str or bytes, such as those of the training.
            targets: their translations.
            **numbers: `translations` of a piece and pieces `everywhere`, 100 each; see
                `kbert.decoding.shortlist`. `shortlist = None` searches all pieces again.
        """
        self.shortlist = shortlist_of_texts(self, sources, targets, **numbers)
        return self.shortlist

    def bert_inputs(self, text: Any) -> tuple[dict[str, Any], Any]:
        """Tokenizes raw strings `text` (B,) for the BERT of a fused model, as graph code.

        Returns:
            The inputs of BERT; bool (B,), whether a text was truncated for it.
        """
        tokenizer: Any = self.bert_tokenizer
        most = self.transformer.bert.max_sequence_length
        packed = pack([tokenizer.tokenize(text)], tokenizer.vocabulary, most)
        inputs = {"bert_token_ids": packed.token_ids, "bert_padding_mask": packed.padding_mask}
        return inputs, packed.truncated

    def signatures(self) -> dict[str, Signature]:
        """Returns the functions of an export and the specs of their inputs.

        A model without attention to the source has no `alignment`.
        """
        specs = text_specs(False)
        aligned = {"alignment": (self.align, specs)} if self.transformer.num_decoder_layers else {}
        return {"serving_default": (self.translate, specs), **aligned}

    def translation_columns(self, texts: Sequence[Any]) -> dict[str, np.ndarray]:
        """Returns the outputs of `translate` for n texts, in their order; strings are bytes.

        Args:
            texts: n str or bytes. Those of similar length share a call of the graph.

        Raises:
            ValueError: `texts` is a single text, or something else.
        """
        read = read_single_texts(listed(texts), "source", "text")
        if read is None:
            raise ValueError(
                f"`texts` must be a list of str or bytes. Received: a {type(texts).__name__}"
            )
        settings = [getattr(self, name) for name in (*_SEARCH, "shortlist")] + adapter_states(self)
        settings.append(getattr(self.transformer, "branch_weights", None))
        translate = cached_graph(self, self.translate, settings, text_specs(False))
        sizes = np.array([len(text) for text in read], "int64")
        # Without texts, an empty batch provides the shapes of the outputs.
        batches = size_batches(sizes, _ROWS_AT_A_TIME) or [np.zeros(0, "int64")]
        found = [translate(text_tensor([read[i] for i in rows])) for rows in batches]
        back = np.argsort(np.concatenate(batches), kind="stable")
        return {
            name: np.concatenate([columns[name].numpy() for columns in found])[back]
            for name in found[0]
        }

    def translations(self, texts: Sequence[Any]) -> list[str]:
        """Returns the best translation of each of n texts.

        Args:
            texts: n str or bytes.

        Raises:
            ValueError: `texts` is a single text, or something else.
        """
        return [text.decode() for text in self.translation_columns(texts)["translation"]]

    def answers(self, texts: Sequence[Any]) -> list[dict[str, Any]]:
        """Translates texts, and returns plain Python values.

        Args:
            texts: n str or bytes.

        Returns:
            A dict a text: `translation`, `score`, `nbest` (dicts of `translation` and `score`, the
            best first) and `truncated`, whether the text was longer than the model reads.

        Raises:
            ValueError: `texts` is a single text, or something else.
        """
        found = self.translation_columns(texts)
        return [
            TASK.json_answer(plain_values({name: found[name][i] for name in sorted(found)}))
            for i in range(len(found["translation"]))
        ]

    def get_config(self) -> dict[str, Any]:
        config = {"bert_tokenizer": None, **super().get_config()}
        # A vocabulary that both sides share is written once.
        if self.target_subwords == self.source_subwords:
            config["target_subwords"] = None
        return config
