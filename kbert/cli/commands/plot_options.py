"""Pictures of `kbert plot`, and the options that each reads."""

from collections.abc import Mapping
from enum import Enum
from typing import Any


class Picture(str, Enum):
    """The kinds of plots."""

    span = "span"
    attention = "attention"
    alignment = "alignment"
    caption = "caption"
    fusion = "fusion"
    curve = "curve"


_OF_TEXTS = (Picture.span, Picture.attention, Picture.alignment, Picture.fusion)
# Options that only some pictures read -> those pictures.
_READ_BY = {
    **dict.fromkeys(("--layer", "--head"), (Picture.attention, Picture.alignment)),
    **dict.fromkeys(("--text", "--question", "--context"), _OF_TEXTS),
    "--pieces": (Picture.alignment,),
    "--metrics": (Picture.curve,),
    "--image": (Picture.caption,),
    "--input": (Picture.fusion,),
}


def check_options(picture: Picture | None, given: Mapping[str, Any]) -> None:
    """Checks the options of a picture, and that their files exist.

    `given` has the value of each option, or None; `picture` is None while it depends on the model.

    Raises:
        ValueError: The picture does not read an option.
        FileNotFoundError: A file does not exist.
    """
    from kbert.training.run import check_file

    for option, value in given.items():
        if value is None or value is False:  # a layer may be 0
            continue
        read_by = [one.value for one in _READ_BY[option]]
        if picture is not None and picture.value not in read_by:
            raise ValueError(
                f"`{option}` must be given for {' or '.join(read_by)} only. "
                f"Received: --picture {picture.value}"
            )
        if option in ("--image", "--input"):
            check_file(option, value)
