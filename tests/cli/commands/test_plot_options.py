import pytest

from kbert.cli.commands.plot_options import Picture, check_options, picture_named

OF_TEXTS = {Picture.span, Picture.attention, Picture.alignment, Picture.fusion}


@pytest.mark.parametrize(
    "option, value, pictures",
    [
        ("--text", "", OF_TEXTS),
        ("--question", "who?", OF_TEXTS),
        ("--context", "Ann", OF_TEXTS),
        ("--layer", 0, {Picture.attention, Picture.alignment}),
        ("--head", 1, {Picture.attention, Picture.alignment}),
        ("--pieces", True, {Picture.alignment}),
        ("--metrics", "loss", {Picture.curve}),
        ("--image", __file__, {Picture.caption}),
        ("--input", __file__, {Picture.fusion}),
    ],
)
def test_each_picture_reads_its_options(option, value, pictures):
    check_options(None, {option: value})
    for picture in Picture:
        if picture in pictures:
            check_options(picture, {option: value})
            continue
        with pytest.raises(ValueError) as caught:
            check_options(picture, {option: value})
        told = str(caught.value)
        assert told.startswith(f"`{option}` must be given for ")
        assert told.endswith(f" only. Received: --picture {picture.value}")
        assert all(one.value in told for one in pictures)


def test_pictures_by_name():
    assert picture_named(None) is None and picture_named("curve") is Picture.curve
    with pytest.raises(ValueError) as caught:
        picture_named("curves")
    assert str(caught.value) == (
        "`--picture` must be one of span, attention, alignment, caption, fusion, curve. Received: "
        "'curves'. Did you mean `curve`?"
    )


def test_options_that_are_not_given():
    for picture in (None, *Picture):
        check_options(picture, {"--layer": None, "--pieces": False, "--image": None})


@pytest.mark.parametrize("option", ["--image", "--input"])
def test_a_file_that_does_not_exist(option):
    with pytest.raises(FileNotFoundError, match=f"`{option}` must be a file. Received: 'no'"):
        check_options(None, {option: "no"})
