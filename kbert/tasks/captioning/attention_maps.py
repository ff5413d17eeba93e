"""Captions with the maps of their words, for display.

Shapes: B rows, T caption pieces, W words, h and w height and width of the map.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.images.decoding import decoded
from kbert.images.reading import read_images
from kbert.tasks.captioning.image_features import as_files
from kbert.text.piece_words import piece_words


@dataclass(frozen=True)
class WordMaps:
    """The caption of an image: where each of its W words was looked for."""

    caption: str
    words: list[str]
    maps: np.ndarray  # float32 (W, h, w); the map of a word is the mean of its pieces', its sum 1
    pixels: np.ndarray  # uint8 (H, W, 3), the image as the model sees it


def word_maps(model: Any, image: Any) -> WordMaps:
    """Captions one image, and returns the map of each word.

    Args:
        model: a `Captioner` whose decoder attends.
        image: the name of a file, bytes, or pixels.

    Raises:
        ValueError: the image cannot be decoded, or the decoder does not attend.
    """
    found = model.caption_columns([image], maps=True)
    problem = found["problem"][0].decode()
    if problem:
        raise ValueError(f"`image` must be an image: {problem}")
    height, width = model.extractor.image_size
    pixels, _ = decoded(as_files(read_images([image])), height, width, model.image_fit)
    # Pieces of no text, such as the end.
    subwords = model.subwords
    silent = {subwords.pieces[i] for i in (subwords.start_id, subwords.end_id, subwords.padding_id)}
    tokens = [token.decode() for token in found["tokens"][0]]
    rows = [row for row, token in enumerate(tokens) if token and token not in silent]
    joined = piece_words([tokens[row] for row in rows])
    grid = found["attention"].shape[2:]
    maps = joined.averaged(found["attention"][0, rows].reshape(len(rows), math.prod(grid)))
    shown = np.rint(pixels[0].numpy()).astype("uint8")
    caption = found["caption"][0].decode()
    return WordMaps(caption, joined.words, maps.reshape(-1, *grid).astype("float32"), shown)
