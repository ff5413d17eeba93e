"""Captioning: an image in, a sentence that says what is in it out.

Shapes: B rows, L places of the map of h x w, T caption pieces, n captions a row.
"""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.checkpoints.captioning_folder import read_captioning, write_captioning
from kbert.checkpoints.pretrained import resolve
from kbert.decoding.scores import check_beam
from kbert.decoding.scores import length_penalty as penalty_of
from kbert.decoding.search import Hypotheses, best_sequences
from kbert.images.decoding import decoded
from kbert.images.reading import read_images
from kbert.images.resizing import check_size
from kbert.models.captioning.feature_extractor import FeatureExtractor
from kbert.pipelines.signatures import Signature, image_specs
from kbert.tasks.answers import plain_values
from kbert.tasks.captioning.batching import CaptionBatching, images_and_captions
from kbert.tasks.captioning.head import FEATURES, Captioning
from kbert.tasks.captioning.image_features import as_files, joined
from kbert.tasks.captioning.saved_captioner import captioner_from, captioning_checkpoint
from kbert.tasks.captioning.task import TASK
from kbert.text.graph_functions import cached_graph, map_in_chunks
from kbert.text.subword import Subword

# Images per call of the graph, and of them those that are seen at a time.
_ROWS_AT_A_TIME, _ROWS_OF_A_CHUNK = 64, 16
# Settings that a search depends on, besides the weights.
_SEARCH = ("beam_size", "length_penalty", "alpha", "nbest", "max_length")


@keras.saving.register_keras_serializable("kbert")
class Captioner(Captioning):
    """Captions images.

    `x` in `fit` is images, with a caption, or a list of captions, for each as `y`, or a table with
    `image` and `caption`; in `predict` it is images, whose captions are returned as a list of str.
    An image is the name of a file, the bytes of one, or an array of pixels.

    Args:
        decoder: a `ShowAttendTell` or an `ImageTransformer`, or another of the same protocol.
        extractor: the network that sees the images.
        subwords: the subwords of captions.
        beam_size: hypotheses of the search; 1 is greedy search.
        length_penalty: "gnmt" or "power", see `kbert.decoding.scores`.
        alpha: the penalty's exponent.
        nbest: number of captions that are returned.
        max_length: the most pieces of a caption, the end included.
        image_fit: "squeeze", the whole image in another aspect ratio, or "crop", its center.
        train_extractor: whether the network learns too.
        label_smoothing: label smoothing of the loss.
        attention_penalty: weight of the decoder's `attention_loss` beside the cross-entropy.
        feature_dropout: rate of the dropout on the extractor's channels, each at all places of an
            image or at none.

    Raises:
        ValueError: the parts do not fit each other, or a number is out of its range.
    """

    batching_type = CaptionBatching
    arguments = (*_SEARCH, "image_fit", *Captioning.arguments)

    def __init__(
        self,
        decoder: Any,
        extractor: FeatureExtractor,
        subwords: Subword,
        beam_size: int = 5,
        length_penalty: str = "power",
        alpha: float = 1.0,
        nbest: int = 1,
        max_length: int = 32,
        image_fit: str = "squeeze",
        train_extractor: bool = False,
        label_smoothing: float = 0.0,
        attention_penalty: float = 1.0,
        feature_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "captioner")
        learned = (train_extractor, label_smoothing, attention_penalty, feature_dropout)
        super().__init__(decoder, extractor, *learned, **kwargs)
        self.subwords = subwords
        self.beam_size, self.length_penalty, self.alpha = beam_size, length_penalty, alpha
        self.nbest, self.max_length, self.image_fit = nbest, max_length, image_fit
        self._check()

    def _check(self) -> None:
        penalty_of(self.length_penalty, self.alpha)
        check_size(*self.extractor.image_size, self.image_fit)
        check_beam(self.beam_size, self.nbest)
        longest = self.decoder.max_sequence_length
        if not 1 <= self.max_length <= longest:
            raise ValueError(
                f"`max_length` must be in [1, {longest}], which the decoder knows. "
                f"Received: max_length={self.max_length}"
            )
        if len(self.subwords) != self.decoder.vocabulary_size:
            raise ValueError(
                "`subwords` must have as many pieces as the decoder has embeddings, "
                f"{self.decoder.vocabulary_size}. Received: {len(self.subwords)}"
            )

    @classmethod
    def from_pretrained(cls, name_or_directory: str | os.PathLike[str], **kwargs: Any) -> Any:
        """Loads a saved captioner.

        Args:
            name_or_directory: a folder of `save_pretrained`, or `org/name` of the Hugging Face hub.
            **kwargs: `dtype` of the decoder, or settings such as `beam_size`, instead of the saved
                ones.

        Raises:
            ValueError: a file is damaged, or kbert cannot hold the model.
            FileNotFoundError: a file is missing.
            OSError: the hub cannot be reached.
        """
        return captioner_from(cls, read_captioning(resolve(name_or_directory)), **kwargs)

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
                f'`format` must be "kbert" for a captioner. Received: format={format!r}'
            )
        return write_captioning(captioning_checkpoint(self), directory, overwrite)

    def search(self, features: Any) -> Hypotheses:
        """Searches the best captions for the vectors of images, as graph code.

        Args:
            features: (B, L, M).
        """
        memory = self.decoder.encode({FEATURES: features})
        step, state = self.decoder.decode_step, self.decoder.start_decoding(memory, self.beam_size)
        rows = tf.shape(features)[0]
        ends = {
            "start_id": self.subwords.start_id,
            "end_id": self.subwords.end_id,
            "max_lengths": tf.fill((rows,), self.max_length),
        }
        penalty = penalty_of(self.length_penalty, self.alpha)
        sizes = {"beam_size": self.beam_size, "nbest": self.nbest}
        return best_sequences(step, state, rows, length_penalty=penalty, **sizes, **ends)

    def caption(self, image: Any) -> dict[str, Any]:
        """Captions encoded images (B,), as graph code. No row depends on the others.

        Args:
            image: string (B,), the bytes of files, see `kbert.images.decoding`.

        Returns:
            `caption` string (B,), `score` float32 (B,), its log-probability divided by the length
            penalty; `nbest_caption` string and `nbest_score` (B, n), best first; `problem` string
            (B,), "" for an image that is well, else why it has no caption, and score 0.
        """

        def run(features: tf.Tensor) -> Sequence[tf.Tensor]:
            found = self.search(features)
            return self.subwords.detokenize(found.token_ids, found.lengths), found.scores

        specs = [tf.TensorSpec((None, self.nbest), t) for t in (tf.string, tf.float32)]
        (texts, scores), problem = self._seen(image, run, specs)
        texts = tf.where(problem[:, None] == "", texts, "")
        scores = tf.where(problem[:, None] == "", scores, 0.0)
        return {
            "caption": texts[:, 0],
            "score": scores[:, 0],
            "nbest_caption": texts,
            "nbest_score": scores,
            "problem": problem,
        }

    def attend(self, image: Any) -> dict[str, Any]:
        """Captions encoded images (B,), and tells where each piece was looked for, as graph code.

        The best caption is found as in `caption`, and then passed through the decoder once more.
        The weights are those of the last layer that attends, the mean of its heads.

        Args:
            image: string (B,), the bytes of files.

        Returns:
            `caption` string (B,), `score` float32 (B,) and `problem` string (B,), as `caption`
            returns. `tokens` string (B, T), the pieces of the caption with the end, padded with "",
            and `attention` float32 (B, T, h, w), the map of each, whose sum is 1, or 0 for padding.

        Raises:
            ValueError: the decoder does not attend to the image.
        """
        if not self.decoder.num_decoder_layers:
            raise ValueError(
                "a caption is drawn by the attention to its image. Received: a decoder without any"
            )
        height, width = self.extractor.map_shape

        def run(features: tf.Tensor) -> Sequence[tf.Tensor]:
            found = self.search(features)
            ids, lengths = found.token_ids[:, 0], found.lengths[:, 0]
            start = tf.fill((tf.shape(ids)[0], 1), self.subwords.start_id)
            known = tf.concat([start, ids[:, :-1]], axis=1)
            layer = self.decoder.memory_scores(known, self.decoder.encode({FEATURES: features}))[-1]
            weights = tf.reduce_mean(tf.cast(layer, tf.float32), axis=1)
            # Probabilities of few bits do not sum to 1 exactly.
            weights /= tf.reduce_sum(weights, axis=-1, keepdims=True)
            real = tf.sequence_mask(lengths, self.max_length)
            more = self.max_length - tf.shape(ids)[1]
            pieces = tf.gather(tf.constant(self.subwords.pieces), tf.pad(ids, [[0, 0], [0, more]]))
            weights = tf.pad(weights, [[0, 0], [0, more], [0, 0]])
            texts = self.subwords.detokenize(ids, lengths)
            weights = tf.where(real[..., None], weights, 0.0)
            return texts, found.scores[:, 0], lengths, tf.where(real, pieces, ""), weights

        shapes = [(None,)] * 3 + [(None, self.max_length), (None, self.max_length, height * width)]
        types = (tf.string, tf.float32, tf.int32, tf.string, tf.float32)
        specs = [tf.TensorSpec(shape, dtype) for shape, dtype in zip(shapes, types)]
        (texts, scores, lengths, tokens, weights), problem = self._seen(image, run, specs)
        is_well = problem == ""
        lengths = tf.where(is_well, lengths, 0)
        longest = tf.reduce_max(tf.concat([lengths, [0]], axis=0))
        weights = tf.where(is_well[:, None, None], weights, 0.0)[:, :longest]
        # Not -1 rows, which nothing tells where no caption has a piece.
        map_shape = tf.shape(image)[0], longest, height, width
        return {
            "caption": tf.where(is_well, texts, ""),
            "score": tf.where(is_well, scores, 0.0),
            "tokens": tf.where(is_well[:, None], tokens, "")[:, :longest],
            "attention": tf.reshape(weights, map_shape),
            "problem": problem,
        }

    def _seen(self, image: Any, run: Any, specs: list[tf.TensorSpec]) -> tuple[Any, Any]:
        """Maps images (B,), a few at a time, and returns the results and the problems (B,)."""
        sizes = tf.ones(tf.shape(image), tf.int32)

        def see(chosen: tf.Tensor) -> Sequence[tf.Tensor]:
            size = self.extractor.image_size
            pixels, problem = decoded(tf.gather(image, chosen), *size, self.image_fit)
            return *run(self.extractor(pixels, training=False)), problem

        every = [*specs, tf.TensorSpec((None,), tf.string)]
        *found, problem = map_in_chunks(see, sizes, _ROWS_OF_A_CHUNK, every)
        return found, problem

    def signatures(self) -> dict[str, Signature]:
        """Returns the functions of an export and the specs of their inputs.

        A decoder that does not attend has no `attention`.
        """
        specs = image_specs()
        attends = {"attention": (self.attend, specs)} if self.decoder.num_decoder_layers else {}
        return {"serving_default": (self.caption, specs), **attends}

    def caption_columns(self, images: Any, maps: bool = False) -> dict[str, np.ndarray]:
        """Returns the outputs of `caption` for n images, in their order; strings are bytes.

        Args:
            images: n images, see the class.
            maps: whether to return the outputs of `attend` instead.

        Raises:
            FileNotFoundError: there is no such file.
            TypeError: `images` is a single image, or something else.
        """
        settings = [getattr(self, name) for name in (*_SEARCH, "image_fit")]
        function = self.attend if maps else self.caption
        graph = cached_graph(self, function, settings, image_specs())
        found: list[dict[str, Any]] = []
        for start in range(0, max(len(images), 1), _ROWS_AT_A_TIME):
            files = as_files(read_images(images[start : start + _ROWS_AT_A_TIME]))
            found.append({k: v.numpy() for k, v in graph(files).items()})
        return {name: joined([one[name] for one in found]) for name in found[0]}

    def captions(self, images: Any) -> list[str]:
        """Returns the best caption of each of n images; one that is no image has "".

        Args:
            images: n images, see the class. There is a warning for those that are none.

        Raises:
            FileNotFoundError: there is no such file.
            TypeError: `images` is a single image, or something else.
        """
        found = self.caption_columns(images_and_captions(images, None)[0])
        for row, problem in enumerate(found["problem"].tolist()):
            if problem:
                message = f"`images`, row {row}: {problem.decode()}; its caption is empty"
                warnings.warn(message, stacklevel=2)
        return [text.decode() for text in found["caption"]]

    def answers(self, images: Any) -> list[dict[str, Any]]:
        """Captions images, and returns plain Python values.

        Args:
            images: n images, see the class.

        Returns:
            A dict an image: `caption`, `score`, `nbest` (dicts of `caption` and `score`, the best
            first) and `problem`, "" for an image that is well.

        Raises:
            FileNotFoundError: there is no such file.
            TypeError: `images` is a single image, or something else.
        """
        found = self.caption_columns(images_and_captions(images, None)[0])
        return [
            TASK.json_answer(plain_values({name: found[name][i] for name in sorted(found)}))
            for i in range(len(found["caption"]))
        ]
