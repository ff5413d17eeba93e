"""Text regression: raw strings in, numbers out."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from kbert.models.encoder import Encoder
from kbert.pipelines.inference import packed_chunks
from kbert.pipelines.sequence_batching import SequenceBatching
from kbert.pipelines.signatures import Signature, text_specs, token_inputs, token_specs
from kbert.pipelines.text_inputs import finite_numbers
from kbert.tasks.regression.head import SequenceRegression
from kbert.text.tokenizer import Tokenizer


class ScoreBatching(SequenceBatching):
    """Batches of texts with a number each as target."""

    def encode_targets(self, y: Any) -> np.ndarray:
        """Converts numbers, n or (n, 1), to float32 (n,).

        Raises:
            ValueError: an entry is not a finite number, or there are several a text.
        """
        return finite_numbers(y, "number a text")


@keras.saving.register_keras_serializable("kbert")
class Regressor(SequenceRegression):
    """Assigns each text, or pair of texts, a number.

    Args:
        encoder: an encoder such as `Bert`.
        tokenizer: the tokenizer of the encoder's vocabulary.
        max_sequence_length: longer texts are cut, in tokens with the special ones.
        head: "pooler" or "two_layer", see `kbert.tasks.classification.head.SequenceHead`; None for
            the one that the encoder was published with.
        dropout: rate of the head's dropout.
        pair: whether it reads two texts; this decides the inputs of its export.

    Raises:
        ValueError: tokenizer or length do not fit the encoder.
    """

    arguments = ("max_sequence_length", "head", "dropout", "pair")
    batching_type = ScoreBatching
    huggingface_architecture = "BertForSequenceClassification"

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer,
        max_sequence_length: int = 128,
        head: str | None = None,
        dropout: float = 0.1,
        pair: bool = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "regressor")
        super().__init__(encoder, head, dropout, **kwargs)
        self.tokenizer = tokenizer
        self.max_sequence_length = max_sequence_length
        self.pair = pair
        self.batching.check()

    def huggingface_config(self) -> dict[str, Any]:
        """Returns the task's entries of a Hugging Face configuration."""
        return {"problem_type": "regression", "classifier_dropout": self.dropout}

    def empty_prediction(self) -> np.ndarray:
        """Returns the prediction for no texts, (0,)."""
        return np.zeros((0,), "float32")

    def rank(
        self, query: str | bytes, documents: Sequence[Any], top_k: int | None = None
    ) -> list[dict[str, Any]]:
        """Orders documents by their scores with a query, as a reranker (cross-encoder) does.

        Args:
            query: the first text of all pairs.
            documents: the second texts, n str or bytes.
            top_k: how many to return; None for all.

        Returns:
            A dict with `index`, the place in `documents`, and `score` for each of the best, the
            highest score first; of equal ones the first in `documents` comes first.

        Raises:
            ValueError: the model was made with pair=False, or `top_k` is below 1.
            TypeError: `query` or a document is neither str nor bytes.
        """
        if not self.pair:
            raise ValueError(
                "`pair` must be True for a model that ranks, which scores a query with a document. "
                "Received: pair=False"
            )
        if top_k is not None and top_k < 1:
            raise ValueError(f"`top_k` must be at least 1, or None. Received: top_k={top_k}")
        if not isinstance(query, str | bytes):
            raise TypeError(f"`query` must be str or bytes. Received: {query!r:.80}")
        texts = list(documents)
        scores = self.predict(([query] * len(texts), texts))
        order = np.argsort(-scores, kind="stable")[:top_k].tolist()
        return [{"index": i, "score": float(scores[i])} for i in order]

    def score(self, text_a: Any, text_b: Any = None) -> dict[str, Any]:
        """Maps raw strings (B,) to `score` float32 and `truncated` bool, both (B,); graph code.

        Args:
            text_a: string (B,), the texts, or the first texts of pairs.
            text_b: string (B,), the second texts; None for single texts.
        """
        packed = self.batching.preprocess(text_a, text_b)

        def column(inputs: dict[str, Any]) -> Any:
            return self(inputs, training=False)[:, None]

        scores = packed_chunks(column, packed, 1)[:, 0]
        return {"score": scores, "truncated": packed.truncated}

    def score_tokens(self, token_ids: Any, segment_ids: Any, lengths: Any) -> dict[str, Any]:
        """Maps token ids (B, T) with lengths (B,) to `score` float32 (B,), as graph code.

        Args:
            token_ids: int (B, T).
            segment_ids: int (B, T), 1 in the second text of a pair, otherwise 0.
            lengths: int (B,), the number of real tokens of each row.
        """
        return {"score": self(token_inputs(token_ids, segment_ids, lengths), training=False)}

    def signatures(self) -> dict[str, Signature]:
        """Returns the functions of an export and the specs of their inputs."""
        return {
            "serving_default": (self.score, text_specs(self.pair)),
            "tokens": (self.score_tokens, token_specs()),
        }

    def answers(self, x: Any) -> list[dict[str, Any]]:
        """Returns a dict with `score` and `truncated` for each text or pair.

        Args:
            x: texts, or pairs for a model with pair=True, in the forms of `fit`.
        """
        predictions, truncated = self.batching.predict_texts(x)
        return [{"score": float(v), "truncated": cut} for v, cut in zip(predictions, truncated)]
