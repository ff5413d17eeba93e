"""Pictures of `kbert plot`, and the options that each reads."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from kbert.hints import nearest


class Picture(str, Enum):
    """The kinds of plots."""

    span = "span"
    attention = "attention"
    alignment = "alignment"
    caption = "caption"
    fusion = "fusion"
    curve = "curve"


PICTURES = tuple(one.value for one in Picture)

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


def picture_named(name: str | None) -> Picture | None:
    """Returns the picture of a name, None for None; another name is a ValueError."""
    if name is None:
        return None
    if name not in PICTURES:
        raise ValueError(
            f"`--picture` must be one of {', '.join(PICTURES)}. Received: {name!r}."
            f"{nearest(name, PICTURES)}"
        )
    return Picture(name)


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
