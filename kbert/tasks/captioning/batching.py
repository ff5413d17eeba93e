"""Images and captions for a captioner, in batches to train on.

Shapes: n images, m captions, B rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.packed_examples import token_rows
from kbert.data.captions.caption_batches import PackedCaptions, caption_dataset
from kbert.images.reading import check_several
from kbert.pipelines.batching import Batching, check_given
from kbert.pipelines.text_inputs import as_column, listed, read_columns
from kbert.tasks.captioning.image_features import image_features, image_pixels

_COLUMNS = {"image", "caption"}


class CaptionBatching(Batching):
    """Batches of captions with their images; `predict` captions images."""

    whole = {"batch_size": 1 << 30}

    def training_cut(self, batch_size: int | None, batch_tokens: int | None) -> dict[str, Any]:
        if batch_tokens is not None:
            raise ValueError(
                "`batch_tokens` must be None for images, which are batched by `batch_size`. "
                f"Received: batch_tokens={batch_tokens}"
            )
        return {"batch_size": batch_size or self.training_rows}

    def pack(self, images: Any, captions: Any, directory: Any = None) -> PackedCaptions:
        """Reads n images and tokenizes their captions, a str or several for each.

        Features of a frozen network are computed once, and kept in the folder `directory`, if
        there is one; of a network that learns, pixels are kept in memory.

        Raises:
            ValueError: images and captions differ in number, an image cannot be decoded, or none
                is there.
            TypeError: a caption is no text.
        """
        images, captions = _cuttable(images), as_column(listed(captions))
        if len(images) != len(captions):
            raise ValueError(
                "`captions` must be as many as `images`, a text or a list of texts for each. "
                f"Received: {len(captions)} and {len(images)}"
            )
        several = [_texts(one, row) for row, one in enumerate(captions)]
        texts = [text for each in several for text in each]
        if not texts:
            raise ValueError("`captions` must hold at least one text. Received: none")
        model = self.model
        rows = np.repeat(np.arange(len(images)), [len(each) for each in several])
        tokens = token_rows(model.subwords, texts, model.decoder.max_sequence_length)
        if model.train_extractor:
            numbers = image_pixels(model, images)
        else:
            numbers = image_features(model, images, directory)
        return PackedCaptions(numbers, rows, tokens)

    def dataset(self, packed: PackedCaptions, targets: Any = None, **kwargs: Any) -> Any:
        """Returns batches of `pack`'s result; see `caption_dataset`."""
        return caption_dataset(packed, **kwargs)

    def text_batches(self, x: Any, y: Any = None, **cut: Any) -> Any:
        if is_numbers(x):
            return None
        images, captions = images_and_captions(x, y)
        check_given(captions)
        rows = cut.pop("batch_size", None) or self.training_rows
        return self.dataset(self.pack(images, captions), batch_size=rows, **cut)

    def predict(self, x: Any, **kwargs: Any) -> Any:
        """Captions images with a list of str, in their order, or predicts logits for numbers.

        Raises:
            TypeError: `x` is a single image.
        """
        if is_numbers(x):
            return self.model.predict_numbers(x, **kwargs)
        return self.model.captions(images_and_captions(x, None)[0])

    @staticmethod
    def holds_texts(x: Any) -> bool:
        """Returns whether the input of a call holds images, not numbers of a batch."""
        return not is_numbers(x)


def is_numbers(x: Any) -> bool:
    """Returns whether `x` is a dataset, or inputs of the model as numbers, not images."""
    return isinstance(x, tf.data.Dataset) or (isinstance(x, dict) and not set(x) & _COLUMNS)


def images_and_captions(x: Any, y: Any) -> tuple[Sequence[Any], Any]:
    """Returns images, and captions if there are any, of a table or of two lists."""
    x = read_columns(x, ("image", "caption"), ("image",))
    if isinstance(x, dict):
        if "image" not in x:
            raise ValueError(
                f"`x` must have the column image, and caption to train on. Received: {list(x)}"
            )
        y = x.get("caption") if y is None else y
        x = x["image"]
    return _cuttable(x), y


def _cuttable(images: Any) -> Sequence[Any]:
    """Returns images in a form that can be cut, each with its place: of an iterator, a list."""
    check_several(images)
    return list(images) if isinstance(images, Iterator) else as_column(images)


def _texts(captions: Any, row: int) -> list[Any]:
    """Returns the captions of an image as a list."""
    if isinstance(captions, str | bytes):
        return [captions]
    if not isinstance(captions, Iterable):
        raise TypeError(
            f"`captions[{row}]` must be a text or a list of texts. Received: {captions!r:.80}"
        )
    return list(captions)
