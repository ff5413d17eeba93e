"""Subword tokenization of any language by a SentencePiece model, as a TensorFlow graph."""

import base64
import os
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
import tensorflow_text as tf_text

from kbert.storage.files import write_atomically
from kbert.text.graph_functions import checked_text

_SPACE = "\u2581"  # how a SentencePiece model writes a space
_LEAST_BEGINNING = 16384  # characters; 20 ms if the model has a piece for none of them
_CHARACTERS_A_PIECE = 64  # SentencePiece's own limit is 16


@keras.saving.register_keras_serializable("kbert")
class Subword:
    """Maps text to the ids of pieces and back, by a trained SentencePiece model.

    The ids are those of the `sentencepiece` library. All of it is graph code of core ops and
    tensorflow-text's SentencepieceTokenizer, for tf.data, tf.function and SavedModels alike. The
    model is in the graph itself, as an attribute of an op: nothing has to be tracked for an
    export. tensorflow-text's own class keeps it in a resource instead, and loses that as soon as
    TensorFlow's seed is set or Keras' session is cleared.

    Detokenization returns the text as the model normalizes it. It is the text itself, character by
    character, if the model was trained with normalization="identity",
    remove_extra_whitespaces=False and byte_fallback=True; only U+2581, which stands for a space in
    such models, becomes a space.

    Bytes that are not UTF-8 are decoded like `bytes.decode("utf-8", "replace")`. No text encodes
    the special pieces: "</s>" is four characters.

    Source: Kudo and Richardson, "SentencePiece" (EMNLP 2018).

    Args:
        model: The content of a `.model` file. It must have pieces for padding, unknown characters,
            start and end.

    Raises:
        TypeError: `model` is not bytes.
        ValueError: `model` is no SentencePiece model, or a special piece is missing.
    """

    def __init__(self, model: bytes) -> None:
        if not isinstance(model, bytes):
            raise TypeError(
                "`model` must be the bytes of a SentencePiece model; Subword.from_file(path) reads "
                f"a file. Received: model={model!r}"
            )
        processor = _processor(model)
        self.model = model
        self.pieces: list[str] = [processor.id_to_piece(i) for i in range(len(processor))]
        self.padding_id: int = processor.pad_id()
        self.unknown_id: int = processor.unk_id()
        self.start_id: int = processor.bos_id()
        self.end_id: int = processor.eos_id()
        self._ids = {piece: number for number, piece in enumerate(self.pieces)}
        self._dropped_spaces = _dropped_spaces(processor, self._ids)
        # An eager constant is captured, not copied, by each graph.
        with tf.init_scope(), tf.device("CPU:0"):
            self._surfaces = tf.constant(_surfaces(processor, self.pieces))
        # One function for all graphs that tokenize: a SavedModel contains the model once.
        self._split = tf.function(
            self._split_rows, input_signature=[tf.TensorSpec((None,), tf.string)], autograph=False
        )

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "Subword":
        """Makes the tokenizer of the `.model` file at `path`.

        Raises:
            FileNotFoundError: The file does not exist.
            ValueError: It is no SentencePiece model, or a special piece is missing.
        """
        file = Path(path)
        if not file.is_file():
            raise FileNotFoundError(f"`path` must be a SentencePiece model. Received: path={file}")
        try:
            return cls(file.read_bytes())
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to `path`, for `from_file` and the `sentencepiece` library."""
        write_atomically(path, self.model)

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of the pieces of each text, without start and end.

        Args:
            text: UTF-8, tf.string (B,).

        Returns:
            RaggedTensor (B, (pieces)), int32. An empty text has none. Characters that the model
            has no piece for are `unknown_id`, one for each run of them, or their bytes if the
            model has byte fallback.

        Raises:
            TypeError: `text` is not a string tensor.
            ValueError: `text` is not of rank 1.
        """
        text = checked_text(text)
        token_ids, row_splits = self._split(text)
        rows = text.shape[0]
        row_splits.set_shape([None if rows is None else rows + 1])
        return tf.RaggedTensor.from_row_splits(token_ids, row_splits, validate=False)

    def beginnings(self, text: tf.Tensor, pieces: int) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the start of each text that suffices for its first `pieces` pieces.

        The op's time grows with the square of a run of characters that the model has no piece for:
        a megabyte of them takes 20 s. So many characters hold more pieces than are read, unless
        most are blanks, or have no piece.

        Args:
            text: UTF-8, tf.string (B,).
            pieces: The number of pieces that are read.

        Returns:
            tf.string (B,), at most 64 characters per piece, and at least 16,384; and bool (B,),
            whether the text is longer.
        """
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
        most = max(_LEAST_BEGINNING, pieces * max(_CHARACTERS_A_PIECE, *map(len, self.pieces)))
        begun = tf.strings.substr(text, 0, most, unit="UTF8_CHAR")
        return begun, tf.strings.length(begun) < tf.strings.length(text)

    def detokenize(
        self, token_ids: tf.Tensor | tf.RaggedTensor, lengths: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Returns the text of each row of ids.

        Padding, start and end become nothing at any position; an unknown piece becomes " \u2047 ".
        Bytes that are not valid UTF-8, which a model with byte fallback may predict, become
        U+FFFD.

        Args:
            token_ids: RaggedTensor (B, (pieces)), or a Tensor (..., T); int32 or int64.
            lengths: (...), how many ids of each row of a Tensor count; the rest is ignored. None:
                all of them.

        Returns:
            tf.string (B,), or (...).

        Raises:
            TypeError: `token_ids` is not of integers.
            ValueError: `token_ids` has no rows, or `lengths` is given with a RaggedTensor or has
                another rank than that of the rows.
            tf.errors.InvalidArgumentError: An id is not of the model, when the graph runs.
        """
        token_ids = self._checked_ids(token_ids, lengths)
        if isinstance(token_ids, tf.RaggedTensor):
            surfaces = token_ids.with_values(tf.gather(self._surfaces, token_ids.values))
        else:
            if lengths is not None:
                counted = tf.sequence_mask(lengths, tf.shape(token_ids)[-1])
                token_ids = tf.where(counted, token_ids, self.padding_id)
            surfaces = tf.gather(self._surfaces, token_ids)
        text = tf.strings.reduce_join(surfaces, axis=-1)
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
        if self._dropped_spaces:
            text = tf.strings.regex_replace(text, self._dropped_spaces, "")
        return tf.strings.regex_replace(text, _SPACE, " ")

    def tokens(self, text: str) -> list[str]:
        """Returns the pieces of `text`, a single str, in readable form."""
        ids = self.tokenize(tf.constant([text])).values
        return [self.pieces[number] for number in ids.numpy().tolist()]

    def id_of(self, piece: str) -> int:
        """Returns the id of `piece`; raises a KeyError if there is none."""
        try:
            return self._ids[piece]
        except KeyError:
            raise KeyError(
                f"`piece` must be one of the model's {len(self)}. Received: piece={piece!r}"
            ) from None

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's argument, in Base64, without reference to a file."""
        return {"model": base64.b64encode(self.model).decode("ascii")}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Subword":
        """Makes the tokenizer of a configuration from `get_config`."""
        return cls(base64.b64decode(config["model"]))

    def __len__(self) -> int:
        return len(self.pieces)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subword) and self.model == other.model

    def __hash__(self) -> int:
        return hash(self.model)

    def __repr__(self) -> str:
        return f"Subword({len(self)} pieces)"

    def _split_rows(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the ids of all texts, concatenated, and their row splits."""
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")
        # Made in the graph, its resource belongs to the graph and lives as long.
        token_ids = tf_text.SentencepieceTokenizer(self.model).tokenize(text)
        return token_ids.values, token_ids.row_splits

    def _checked_ids(self, token_ids: Any, lengths: Any) -> tf.Tensor | tf.RaggedTensor:
        """Returns `token_ids` as an integer tensor with rows, checked."""
        is_ragged = isinstance(token_ids, tf.RaggedTensor)
        if not is_ragged:
            is_empty = isinstance(token_ids, list | tuple) and not token_ids
            token_ids = tf.zeros((0, 0), tf.int32) if is_empty else token_ids
            try:
                token_ids = tf.convert_to_tensor(token_ids)
            except (ValueError, TypeError) as error:  # whose words are of sequences and of types
                raise TypeError(
                    "`token_ids` must be rows of ids, of one length in a list. "
                    f"Received: {token_ids!r:.80}"
                ) from error
        if token_ids.dtype not in (tf.int32, tf.int64):
            raise TypeError(
                f"`token_ids` must be of dtype int32 or int64. Received: {token_ids.dtype.name}"
            )
        shape = token_ids.shape
        if shape.rank is None or shape.rank < 2 or (is_ragged and shape.rank > 2):
            raise ValueError(
                "`token_ids` must be a RaggedTensor (B, (pieces)) or a Tensor (..., T) of known "
                f"rank, at least 2. Received: {type(token_ids).__name__} of shape={shape}"
            )
        if lengths is None:
            return token_ids
        rank = tf.convert_to_tensor(lengths).shape.rank
        if is_ragged or rank != shape.rank - 1:
            raise ValueError(
                "`lengths` must be a number for each row of a Tensor, and None for a RaggedTensor. "
                f"Received: lengths of rank {rank} with a {type(token_ids).__name__} of "
                f"shape={shape}"
            )
        return token_ids


def _processor(model: bytes) -> Any:
    """Loads the model into the `sentencepiece` library, checked."""
    import sentencepiece

    try:
        # Empty bytes would make a processor that fails only in use.
        processor = sentencepiece.SentencePieceProcessor(model_proto=model) if model else None
    except (RuntimeError, ValueError):
        processor = None
    if processor is None:
        raise ValueError(
            "`model` must be a SentencePiece model. Received: "
            f"{len(model)} bytes, beginning with {model[:16]!r}"
        )
    names = ("padding", "unknown characters", "the start", "the end")
    ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    missing = [name for name, number in zip(names, ids) if number < 0]
    if missing:
        raise ValueError(
            f"`model` must have pieces for {', '.join(names)}. Received: a model of "
            f"{len(processor)} pieces without one for {', '.join(missing)}"
        )
    return processor


def _surfaces(processor: Any, pieces: list[str]) -> list[bytes]:
    """Returns what each piece adds to a text; spaces are still written as U+2581."""
    surfaces = [piece.encode() for piece in pieces]
    for number, piece in enumerate(pieces):
        if processor.is_control(number):
            surfaces[number] = b""
        elif processor.is_byte(number):
            surfaces[number] = bytes.fromhex(piece[3:5])  # <0xE4>
        elif processor.is_unknown(number):
            surfaces[number] = processor.decode([number]).encode()
    return surfaces


def _dropped_spaces(processor: Any, ids: dict[str, int]) -> str:
    """Returns a pattern of the spaces that the model itself puts before a text, "" if none.

    The library does not report a model's settings, but they can be observed: a model that drops
    extra spaces drops all of them at the start, one that adds a dummy prefix drops that one.
    """
    if _SPACE not in ids:
        return ""
    kept = len(processor.decode([ids[_SPACE]] * 2))
    return ("^\u2581+", "^\u2581", "")[kept]
