"""Curves of a training: what is drawn, and what is refused."""

import pytest

from kbert.plots.pictures import plot_curves, usual_metrics

LOSSES = ("loss", "cross_entropy", "mse")
EPOCHS = [
    {"epoch": 1, "training": {"loss": 2.0}, "validation": {"f1": 0.25, "per_class": {"a": 1}}},
    {"epoch": 2, "training": {"loss": 1.0}, "validation": {"f1": 0.5}},
    {"epoch": 3, "training": {"loss": 0.5}},
]


def drawn(axes):
    """Label -> points of each curve."""
    return {line.get_label(): list(zip(*line.get_data())) for line in axes.get_lines()}


def test_each_metric_has_its_points():
    loss, f1 = plot_curves(EPOCHS, ["loss", "f1"], "epoch").axes
    assert drawn(loss) == {"training": [(1, 2.0), (2, 1.0), (3, 0.5)]}
    assert drawn(f1) == {"validation": [(1, 0.25), (2, 0.5)]}
    assert (loss.get_ylabel(), f1.get_ylabel(), f1.get_xlabel()) == ("loss", "f1", "epoch")


def test_training_and_validation_are_told_apart():
    records = [
        {"step": step, "training": {"masked_loss": 9 / step}, "validation": {"masked_loss": 8}}
        for step in (100, 200)
    ]
    (axes,) = plot_curves(records, ["masked_loss"], "step").axes
    assert drawn(axes) == {
        "training": [(100, 0.09), (200, 0.045)],
        "validation": [(100, 8), (200, 8)],
    }
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["training", "validation"]
    assert axes.get_ylabel() == "masked loss"


@pytest.mark.parametrize(
    "loss, label", [("loss", "validation"), ("cross_entropy", "validation (cross entropy)")]
)
def test_both_losses_stand_together_and_what_was_kept_is_marked(loss, label):
    records = [
        {"epoch": number, "training": {"loss": 1 / number}, "validation": {loss: 2 / number}}
        for number in (1, 2)
    ]
    (axes,) = plot_curves(records, ["loss"], "epoch", [2], LOSSES).axes
    assert drawn(axes) == {
        "training": [(1, 1.0), (2, 0.5)],
        label: [(1, 2.0), (2, 1.0)],
        "kept": [(2, 0), (2, 1)],  # from the bottom to the top
    }
    (axes,) = plot_curves(records, ["loss"], "epoch", [1, 2], LOSSES).axes
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["training", label, "kept"]
    assert usual_metrics(records, "cross_entropy", LOSSES) == ["loss"]


def test_epochs_are_whole_numbers():
    figure = plot_curves(EPOCHS, ["loss"], "epoch")
    figure.draw_without_rendering()
    assert all(float(place).is_integer() for place in figure.axes[0].get_xticks())


def test_the_usual_metrics():
    assert usual_metrics(EPOCHS) == ["loss"]
    assert usual_metrics(EPOCHS, "f1") == ["loss", "f1"]
    assert usual_metrics(EPOCHS, "loss") == ["loss"]
    training = {"loss": 7, "masked_accuracy": 0.1, "masked_loss": 6, "perplexity": 403}
    assert usual_metrics([{"step": 1, "training": training}]) == ["masked_accuracy", "masked_loss"]


@pytest.mark.parametrize(
    "records, metrics, message",
    [
        ([], ["loss"], "`records` must have at least one epoch or interval. Received: none"),
        (EPOCHS, ["los"], "`metrics` must be of loss, f1. Received: los"),
        (EPOCHS, ["per_class"], "`metrics` must be of loss, f1. Received: per_class"),
        (EPOCHS, [], "`metrics` must be of loss, f1. Received: none"),
    ],
)
def test_what_is_refused(records, metrics, message):
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        plot_curves(records, metrics, "epoch")
