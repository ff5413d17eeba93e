"""Multiple choice: a context and K choices in, the best choice out (SWAG)."""

from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from kbert.data.batches.dataset import planned_batches, read_ahead
from kbert.data.batches.epochs import Epochs
from kbert.data.batches.plans import batch_plan
from kbert.data.batches.text_tensor import text_tensor
from kbert.models.bert import Bert
from kbert.pipelines.base.raw_text_model import RawTextModel
from kbert.pipelines.base.text_inputs import listed
from kbert.pipelines.base.text_model import Signature, model_inputs
from kbert.tasks.multiple_choice.head import ChoiceSelection
from kbert.tasks.multiple_choice.inputs import check_indices, read_choice_inputs
from kbert.text.sequences.packing import PackedText
from kbert.text.wordpiece.wordpiece import WordPiece

_ROWS = 16
_WRONG = "`x` must be a tuple of n contexts and of n lists of choices. Received: {}"


@keras.saving.register_keras_serializable("kbert")
class MultipleChoice(RawTextModel, ChoiceSelection):
    """Chooses the best of K continuations of a context.

    `x` in `fit`, `evaluate` and `predict` is a tuple (contexts, choices): n str, and n lists of K
    str, the same K for all; or a dict of both. `y` is the index of the right choice.

    Args:
        encoder: a `Bert`.
        tokenizer: the tokenizer of the encoder's vocabulary.
        max_sequence_length: context and choice together are cut to this many tokens.
        head: "pooler" or "two_layer", see `kbert.tasks.classification.head.SequenceHead`.
        dropout: rate of the head's dropout.

    Raises:
        ValueError: tokenizer or length do not fit the encoder.
    """

    huggingface_architecture = "BertForMultipleChoice"
    pair = True
    training_rows = _ROWS

    def __init__(
        self,
        encoder: Bert,
        tokenizer: WordPiece,
        max_sequence_length: int = 128,
        head: str = "pooler",
        dropout: float = 0.1,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "multiple_choice")
        super().__init__(encoder, head, dropout, **kwargs)
        self.tokenizer = tokenizer
        self.max_sequence_length = max_sequence_length
        self.check_tokenizer()

    def huggingface_config(self) -> dict[str, Any]:
        """Returns the task's entries of a Hugging Face configuration."""
        return {"classifier_dropout": self.dropout}

    dataset_keys = ("context", "choices")

    def preprocess(self, text_a: Any, text_b: Any = None) -> PackedText:
        """Tokenizes contexts (B,) and choices (B, K) to ids (B, K, T), as graph code.

        Args:
            text_a: string (B,), the contexts.
            text_b: string (B, K), their choices.
        """
        shape = tf.shape(text_b)
        contexts = tf.repeat(text_a, shape[1])
        packed = super().preprocess(contexts, tf.reshape(text_b, (-1,)))
        # (B K, T) -> (B, K, T); lengths and truncation likewise
        length = tf.shape(packed.token_ids)[1]
        return PackedText(
            *(
                tf.reshape(x, (*tf.unstack(shape), length) if x.shape.rank == 2 else shape)
                for x in packed
            )
        )

    def read_inputs(self, x: Any) -> Any:
        """Reads `x` as contexts with choices; returns None if it is something else.

        Args:
            x: a tuple of n contexts and of n lists of K choices, a dict or table with `context` and
                `choices`, or anything else.
        """
        return read_choice_inputs(x)

    def predict(
        self, x: Any, batch_size: int | None = None, verbose: Any = 0, **kwargs: Any
    ) -> Any:
        """Returns the probabilities (n, K) of the choices, in the order of `x`.

        Args:
            x: a tuple of n contexts and of n lists of K choices, a dict or table with `context` and
                `choices`, or what Keras takes.
            batch_size: examples a batch, of K texts each; 16 by default.
            verbose: 0 is silent, 1 draws a bar, 2 prints a line; "auto" is 1 as a rule.
            **kwargs: further arguments of Keras' `predict`.
        """
        x = listed(x)
        inputs = self.read_inputs(x)
        if inputs is None:
            return super().predict(x, batch_size, verbose, **kwargs)
        if not len(inputs):
            return np.zeros((0, 0), "float32")
        dataset = self.choice_dataset(x, batch_size=batch_size or self.training_rows)
        return super().predict(dataset, verbose=verbose, **kwargs)

    def choice_dataset(
        self,
        x: Any,
        y: Any = None,
        batch_size: int = _ROWS,
        shuffle: bool = False,
        seed: int = 0,
        sample_weight: Any = None,
        first_epoch: int = 0,
        first_batch: int = 0,
    ) -> tf.data.Dataset:
        """Returns batches of token ids (B, K, T), with indices (B,) and weights (B,) where given.

        Args:
            x: contexts and choices, in the forms of `fit`.
            y: n indices, or None.
            batch_size: examples a batch, of K texts each.
            shuffle: whether to shuffle, differently in each pass.
            seed: seed of the shuffling.
            sample_weight: n weights, or None.
            first_epoch: number of the first pass; above 0 where a run is resumed.
            first_batch: batches to skip; such a dataset is the rest of one epoch.

        Raises:
            ValueError: the number of choices is not the same for all examples, or an index is out
                of range.
        """
        inputs = self.read_inputs(x)
        if inputs is None:
            raise ValueError(_WRONG.format(type(x).__name__))
        flat = text_tensor([text for row in inputs.choices for text in row])
        columns = [text_tensor(inputs.contexts), tf.reshape(flat, (len(inputs), -1))]
        if y is not None:
            columns.append(tf.constant(check_indices(y, inputs)))
        if sample_weight is not None:
            columns.append(tf.constant(np.asarray(sample_weight, "float32")))

        def encode(rows: tf.Tensor) -> Any:
            context, choice, *targets = (tf.gather(column, rows) for column in columns)
            numbers = model_inputs(self.preprocess(context, choice))
            return (numbers, *targets) if targets else numbers

        # All count as equally long: they keep their order, or have that of seed and epoch.
        plan = partial(batch_plan, np.ones(len(inputs)), batch_size, None, shuffle, seed)
        epochs = Epochs(first_epoch)
        dataset = planned_batches(plan, epochs, first_batch, is_constant=True)
        dataset = read_ahead(dataset.map(encode, num_parallel_calls=tf.data.AUTOTUNE))
        dataset.epochs = epochs
        return dataset

    def batches(
        self,
        columns: tuple[Any, ...],
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        shuffle: bool = False,
        seed: int = 0,
    ) -> tf.data.Dataset:
        """Returns batches of examples, their indices, and their weights if there are any.

        Args:
            columns: the inputs that `read_inputs` returns, n targets as numbers, and n weights if
                there are any.
            batch_size: examples a batch, or None.
            batch_tokens: must be None, since an example has several texts.
            shuffle: whether to shuffle, differently in each pass.
            seed: seed of the shuffling.
        """
        if batch_tokens is not None:
            raise ValueError(
                "`batch_tokens` must be None for multiple choice, whose rows hold several texts. "
                f"Received: batch_tokens={batch_tokens}"
            )
        inputs, y, *weights = columns
        if not len(inputs):
            raise ValueError("`x` must hold at least one row. Received: none")
        rows = batch_size or self.training_rows
        x = (inputs.contexts, inputs.choices)
        return self.choice_dataset(x, y, rows, shuffle, seed, *weights)

    def call_inputs(self, x: Any) -> Any:
        """Tokenizes contexts with choices to the ids (n, K, T) that a call of the model takes.

        Args:
            x: a tuple of n contexts and of n lists of K choices, or a dict or table of both.
        """
        inputs = self.read_inputs(x)
        if inputs is None:
            raise ValueError(_WRONG.format(type(x).__name__))
        return next(iter(self.choice_dataset(x, batch_size=len(inputs))))

    def predict_step(self, data: Any) -> Any:
        """Returns the probabilities (B, K) of one batch."""
        return self.scores(keras.utils.unpack_x_y_sample_weight(data)[0])

    def scores(self, inputs: dict[str, Any]) -> Any:
        """Returns probabilities float32 (B, K) for token ids (B, K, T), as graph code.

        Args:
            inputs: dict of `token_ids`, `segment_ids` and `padding_mask`, each (B, K, T).
        """
        return ops.softmax(self(inputs, training=False), axis=-1)

    def choose(self, context: Any, choices: Any) -> dict[str, Any]:
        """Chooses among choices (B, K) for contexts (B,), as graph code.

        Args:
            context: string (B,).
            choices: string (B, K).

        Returns:
            `choice` int32 (B,), `score` (B,), `scores` (B, K), `truncated` bool (B,).
        """
        packed = self.preprocess(context, choices)
        scores = self.scores(model_inputs(packed))
        return {
            "choice": tf.argmax(scores, axis=-1, output_type=tf.int32),
            "score": tf.reduce_max(scores, axis=-1),
            "scores": scores,
            "truncated": tf.reduce_any(packed.truncated, axis=-1),
        }

    def signatures(self) -> dict[str, Signature]:
        """Returns the function of an export and the specs of its inputs."""
        specs = [
            tf.TensorSpec((None,), tf.string, name="context"),
            tf.TensorSpec((None, None), tf.string, name="choices"),
        ]
        return {"serving_default": (self.choose, specs)}

    def answers(self, x: Any) -> list[dict[str, Any]]:
        """Returns a dict with `choice`, `score` and `scores` for each example of `x`.

        Args:
            x: a tuple of n contexts and of n lists of K choices, or a dict or table of both.
        """
        return [
            {"choice": int(np.argmax(r)), "score": float(np.max(r)), "scores": r.tolist()}
            for r in self.predict(x)
        ]

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "max_sequence_length": self.max_sequence_length,
        }
