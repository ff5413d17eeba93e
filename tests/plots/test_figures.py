import pytest

from kbert.plots.figures import new_figure, write_figure


@pytest.mark.parametrize("ending, begins", [("png", b"\x89P"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_ending_says_the_format(ending, begins, tmp_path):
    figure, axes = new_figure(2, 1)
    axes.plot([0, 1])
    path = write_figure(figure, tmp_path / f"a.{ending}")
    assert path.read_bytes().startswith(begins)


def test_an_unknown_ending(tmp_path):
    with pytest.raises(ValueError, match="`path` must end in one of .png, .svg, .pdf. Received: "):
        write_figure(new_figure(2, 1)[0], tmp_path / "a.jpeg")
