from kbert.plots.figures import label_style, new_figure, readable, write_figure


def test_control_characters_are_spelled_out():
    shown = readable(["a\nb", "\0", "ok \u2581", "\ud800"])
    assert shown == [r"a\nb", r"\x00", "ok \u2581", r"\ud800"]


def test_dollars_begin_no_formula(tmp_path):
    """As a formula, the label would be an error."""
    figure, axes = new_figure(2, 1)
    axes.set_xticks([0], [r"$\x_^$"], **label_style([r"$\x_^$"], 7))
    assert write_figure(figure, tmp_path / "a.svg").exists()
