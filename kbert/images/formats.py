"""Formats of encoded images, by their first bytes, and what bytes are that are no known image."""

import tensorflow as tf

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WebP")
# The offset and the bytes that each begins with, in the order of `FORMATS`.
_BEGINNINGS = (
    (0, b"\xff\xd8\xff"),
    (0, b"\x89PNG\r\n\x1a\n"),
    (0, b"GIF8"),
    (0, b"BM"),
    (8, b"WEBP"),
)
# Images that cannot be decoded here, likewise.
_OTHER_IMAGES = (
    ("TIFF", 0, b"II*\0"),
    ("TIFF", 0, b"MM\0*"),
    ("HEIF", 4, b"ftyphei"),
    ("HEIF", 4, b"ftypmif1"),
    ("AVIF", 4, b"ftypavif"),
    ("JPEG XL", 0, b"\xff\x0a"),
    ("JPEG XL", 0, b"\0\0\0\x0cJXL "),
    ("JPEG 2000", 0, b"\0\0\0\x0cjP  "),
    ("Photoshop", 0, b"8BPS"),
    ("PDF", 0, b"%PDF"),
    ("SVG", 0, b"<svg"),
)
# The beginnings of JPEG, PNG, GIF and WebP in base64, and of a data URL.
_BASE64 = (b"/9j/", b"iVBORw0KGgo", b"R0lGOD", b"UklGR", b"data:image/")
_SHOWN = 8
_LONGEST = 16
_HEX = [f"{byte:02x}" for byte in range(256)]
_EXPECTED = f"the image must be the bytes of a file in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"


def format_of(images: tf.Tensor) -> tf.Tensor:
    """Returns each image's place in `FORMATS`, or their number for one in none of them.

    Args:
        images: strings (B,).

    Returns:
        int32 (B,).
    """
    found = tf.fill(tf.shape(images), len(FORMATS))
    for place, (offset, beginning) in enumerate(_BEGINNINGS):
        found = tf.where(_has(images, offset, beginning), place, found)
    return found


def unknown_problem(images: tf.Tensor) -> tf.Tensor:
    """Returns what is wrong with images that are in none of the formats, strings (B,)."""
    found = tf.strings.join([f"{_EXPECTED}. Received: bytes that begin with ", _shown(images)])
    for name, offset, beginning in _OTHER_IMAGES:
        message = f"{_EXPECTED}. Received: {name}"
        found = tf.where(_has(images, offset, beginning), message, found)
    message = f"{_EXPECTED}. Received: text in base64; decode it first"
    for beginning in _BASE64:
        found = tf.where(_has(images, 0, beginning), message, found)
    return tf.where(images == "", f"{_EXPECTED}. Received: no bytes", found)


def broken_problem(formats: tf.Tensor) -> tf.Tensor:
    """Returns the message for images that their decoder refused, strings (B,)."""
    names = tf.gather(tf.constant([*FORMATS, "image"]), formats)
    return tf.strings.join(["the ", names, " file must be whole. Received: broken or cut off data"])


def _has(images: tf.Tensor, offset: int, expected: bytes) -> tf.Tensor:
    padded = tf.strings.join([images, b"\0" * _LONGEST])
    return tf.strings.substr(padded, offset, len(expected)) == expected


def _shown(images: tf.Tensor) -> tf.Tensor:
    """Returns the first bytes of strings (B,) as text where they are printable, else in hex."""
    first = tf.strings.substr(images, 0, _SHOWN)
    is_text = tf.strings.regex_full_match(first, "[ -~]*")
    filled = tf.strings.substr(tf.strings.join([first, b"\0" * _SHOWN]), 0, _SHOWN)
    values = tf.cast(tf.io.decode_raw(filled, tf.uint8), tf.int32)
    hexadecimal = tf.strings.reduce_join(tf.gather(tf.constant(_HEX), values), axis=-1)
    lengths = 2 * tf.strings.length(first)
    hexadecimal = tf.strings.substr(hexadecimal, tf.zeros_like(lengths), lengths)
    return tf.where(is_text, tf.strings.join(["'", first, "'"]), hexadecimal)
