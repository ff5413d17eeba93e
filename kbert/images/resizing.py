"""Images of any size -> one size: bilinear interpolation with an antialiasing filter.

The filter is the triangle whose width grows with the reduction, as in Pillow's `Image.resize` with
`BILINEAR` and in `tf.image.resize(antialias=True)`, on which published image classifiers were
trained. Bilinear interpolation without it reads four pixels for each pixel of the result, and what
falls between them is lost.
"""

import tensorflow as tf

FITS = ("squeeze", "crop")
CHANNELS = 3


def check_size(height: int, width: int, fit: str) -> None:
    """Raises a ValueError for a size that is not positive, or an unknown fit."""
    for name, value in (("height", height), ("width", width)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(
                f"`{name}` must be a whole number of pixels, at least 1. Received: "
                f"{name}={value!r}"
            )
    if fit not in FITS:
        raise ValueError(f"`fit` must be one of {FITS}. Received: fit={fit!r}")


def resized(
    pixels: tf.Tensor, size: tf.Tensor, fit: str, extent: tf.Tensor | None = None
) -> tf.Tensor:
    """Returns images in another size.

    Args:
        pixels: uint8 (B, h, w, 3), values in 0..255.
        size: int32 (2,), height and width of the result.
        fit: "squeeze" shows the whole image, with another aspect ratio; "crop" scales both sides
            alike until the image covers the result, and cuts off what is beyond it, as much at
            either end.
        extent: float32 (2,), height and width of the images in their own pixels, where the last
            row and column reach beyond the image, as in a JPEG decoded at a smaller ratio. None:
            (h, w).

    Returns:
        float32 (B, *size, 3), values in 0..255.
    """
    wanted = tf.cast(size, tf.float32)
    given = tf.cast(tf.shape(pixels)[1:3], tf.float32) if extent is None else extent
    scale = wanted / given
    translation = tf.zeros(2)
    if fit == "crop":
        scale = tf.repeat(tf.reduce_max(scale), 2)
        translation = (wanted - scale * given) / 2
    found = tf.raw_ops.ScaleAndTranslate(
        images=pixels,
        size=size,
        scale=scale,
        translation=translation,
        kernel_type="triangle",
        antialias=True,
    )
    return tf.clip_by_value(found, 0.0, 255.0)
