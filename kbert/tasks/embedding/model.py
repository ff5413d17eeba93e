"""Sentence embeddings: raw strings in, vectors out."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.models.encoder import Encoder
from kbert.pipelines.inference import packed_chunks
from kbert.pipelines.signatures import Signature, text_specs, token_inputs, token_specs
from kbert.pipelines.text_inputs import is_texts
from kbert.tasks.embedding import search
from kbert.tasks.embedding.batching import EmbeddingBatching
from kbert.tasks.embedding.cached_step import cached_train_step
from kbert.tasks.embedding.encoding import encode_cut, encode_windows
from kbert.tasks.embedding.head import SequenceEmbedding
from kbert.tasks.embedding.sentence_transformers import with_modules, write_modules
from kbert.text.tokenizer import Tokenizer

LONG = ("cut", "windows")


@keras.saving.register_keras_serializable("kbert")
class TextEmbedder(SequenceEmbedding):
    """Maps each text to a vector, such that texts of like meaning have like vectors.

    `fit` learns from a tuple of two lists of texts, or more: with scores as `y`, the cosines of the
    pairs; without, that each first text belongs to the second of its own example, among all second
    texts of the batch. Third and further texts do not fit the first (hard negatives).

    Args:
        encoder: an encoder such as `Bert`.
        tokenizer: the tokenizer of the encoder's vocabulary.
        max_sequence_length: longer texts are cut, in tokens with the special ones.
        pooling: "mean" or "max" of the states of all real tokens, or "cls", the state of [CLS].
        normalize: whether vectors have length 1, so that dot products are cosines.
        dense: width of a dense layer between pooling and normalization; None for no such layer.
        dense_activation: name of its activation ("tanh", "gelu", "relu", ...), or None.

    Raises:
        ValueError: pooling, tokenizer, width or length do not fit the encoder.
    """

    arguments = ("max_sequence_length", *SequenceEmbedding.arguments)
    batching_type = EmbeddingBatching
    formats = ("kbert", "sentence-transformers")
    default_sequence_length = 256

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer,
        max_sequence_length: int = 256,
        pooling: str = "mean",
        normalize: bool = True,
        dense: int | None = None,
        dense_activation: str | None = "tanh",
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "embedder")
        super().__init__(encoder, pooling, normalize, dense, dense_activation, **kwargs)
        self.tokenizer = tokenizer
        self.max_sequence_length = max_sequence_length
        self.batching.check()

    def empty_prediction(self) -> np.ndarray:
        """Returns the prediction for no texts, (0, D)."""
        return np.zeros((0, self.width), "float32")

    def train_step(self, *args: Any) -> Any:
        """Runs Keras' training step, in two passes where the loss has `chunk_rows`."""
        rows = getattr(self.loss, "chunk_rows", None)
        # On JAX in one pass, which computes the same.
        if rows is None or keras.backend.backend() != "tensorflow":
            return super().train_step(*args)
        return cached_train_step(self, args[0], rows)

    def encode(self, texts: Any, batch_size: int | None = None, long: str = "cut") -> np.ndarray:
        """Returns the vectors of texts, float32 (n, D), in their order; of a single text (D,).

        Args:
            texts: a list, array, iterator or column of n str or bytes, or a single one.
            batch_size: texts a batch, of similar length; None for as many as fill a budget of
                positions.
            long: of texts of more than `max_sequence_length` tokens: "cut" leaves out what is too
                much, as sentence-transformers does. "windows" reads all of it, in windows of that
                length that do not overlap, each with its own [CLS] and [SEP]. The pooled state of
                the text is then, before the dense layer and the normalization, the mean over the
                tokens of all its windows, special ones included; with `pooling="max"` the maximum
                over these, and with "cls" the mean of the windows' states of [CLS], each weighted
                by its number of tokens. Shorter texts have the same vectors either way.

        Raises:
            ValueError: `texts` are several columns, or `long` is unknown.
            TypeError: an entry is neither str nor bytes.
        """
        if long not in LONG:
            raise ValueError(f"`long` must be one of {list(LONG)}. Received: long={long!r}")
        if isinstance(texts, str | bytes):
            found: np.ndarray = self.encode([texts], batch_size, long)[0]
            return found
        columns = self.batching.columns(texts)
        if len(columns) != 1:
            raise ValueError(f"`texts` must be one list. Received: {len(columns)} columns")
        if long == "windows":
            return encode_windows(self, columns[0], batch_size)
        return encode_cut(self, self.pack(columns[0]), batch_size)

    def similarity(self, a: Any, b: Any, kind: str = "cosine") -> np.ndarray:
        """Returns the similarities float32 (n, m) of each of n texts with each of m.

        Args:
            a: n texts, or vectors float (n, D).
            b: m texts, or vectors float (m, D).
            kind: "cosine" or "dot".

        Raises:
            ValueError: the kind is unknown, a text is not in a list, or the vectors are no matrices
                of one width.
        """
        return search.similarity(self._vectors("a", a), self._vectors("b", b), kind)

    def search(
        self, queries: Any, matrix: Any, k: int = 10, kind: str = "cosine"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finds the k most similar of m texts for each of n queries; exact, in blocks.

        Args:
            queries: n texts, or vectors float (n, D).
            matrix: m texts, or vectors float (m, D), such as a `numpy.memmap`.
            k: how many; fewer where there are fewer than k texts.
            kind: "cosine" or "dot".

        Returns:
            `places` int64 (n, k), the indices in `matrix`, best first, of equal ones the first
            first; and `scores` float32 (n, k), their similarities.

        Raises:
            ValueError: `k` is below 1, the kind is unknown, a text is not in a list, the vectors
                are no matrices of one width, or are not finite.
        """
        vectors = self._vectors("queries", queries), self._vectors("matrix", matrix)
        return search.search(*vectors, k, kind)

    def _vectors(self, name: str, given: Any) -> Any:
        """Returns vectors as they are, and texts as their vectors."""
        if isinstance(given, str | bytes):
            raise ValueError(f"`{name}` must be a list of texts. Received: {given!r:.80}")
        if isinstance(given, np.ndarray) and given.dtype.kind not in "OUS":
            return given
        numbers = isinstance(given, Sequence) and len(given) and not is_texts(given)
        return np.asarray(given) if numbers else self.encode(given)

    def embed(self, text: Any) -> dict[str, Any]:
        """Embeds raw strings (B,), as graph code.

        Args:
            text: string (B,).

        Returns:
            `embedding` float32 (B, D), `truncated` bool (B,).
        """
        packed = self.batching.preprocess(text)

        def vectors(inputs: dict[str, Any]) -> Any:
            return self(inputs, training=False)

        return {
            "embedding": packed_chunks(vectors, packed, self.width),
            "truncated": packed.truncated,
        }

    def embed_tokens(self, token_ids: Any, segment_ids: Any, lengths: Any) -> dict[str, Any]:
        """Maps token ids (B, T) with lengths (B,) to `embedding` float32 (B, D), as graph code.

        Args:
            token_ids: int (B, T).
            segment_ids: int (B, T), all 0.
            lengths: int (B,), the number of real tokens of each row.
        """
        return {"embedding": self(token_inputs(token_ids, segment_ids, lengths), training=False)}

    def signatures(self) -> dict[str, Signature]:
        """Returns the functions of an export and the specs of their inputs."""
        return {
            "serving_default": (self.embed, text_specs(False)),
            "tokens": (self.embed_tokens, token_specs()),
        }

    def answers(self, x: Any) -> list[dict[str, Any]]:
        """Returns a dict with `embedding`, D floats, and `truncated` for each text of `x`.

        Args:
            x: a list, array, iterator or column of str or bytes.
        """
        vectors, truncated = self.batching.predict_texts(x)
        return [{"embedding": v.tolist(), "truncated": cut} for v, cut in zip(vectors, truncated)]

    @classmethod
    def completed(cls, checkpoint: Checkpoint) -> Checkpoint:
        """Returns a checkpoint with what the files of sentence-transformers beside it say.

        Args:
            checkpoint: a checkpoint from `kbert.checkpoints.read_checkpoint`.

        Raises:
            ValueError: they have modules that a `TextEmbedder` does not have.
        """
        return with_modules(checkpoint, cls.__name__)

    def save_pretrained(
        self, directory: str | os.PathLike[str], format: str = "kbert", overwrite: bool = False
    ) -> Path:
        """Writes weights, vocabulary and settings for `from_pretrained`.

        Args:
            directory: the directory to create; it is returned.
            format: "kbert", or "sentence-transformers", whose `SentenceTransformer` reads it.
            overwrite: whether an existing directory may be replaced, with all that it holds.

        Raises:
            ValueError: the format is unknown, or the encoder has adapters, which only "kbert" has.
            FileExistsError: the directory exists, and may not be replaced.
        """
        if format != "sentence-transformers":
            return super().save_pretrained(directory, format, overwrite)
        return write_modules(self, directory, overwrite)
