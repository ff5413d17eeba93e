"""The captioner of `kbert demo`: drawn shapes, and where each word of a caption was looked for."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kbert.data.captions.captioned_images import read_captions
from kbert.data.samples.drawn_shapes import CAPTIONS_FILE, IMAGES_FOLDER, write_drawn_shapes
from kbert.plots.caption_maps import plot_caption
from kbert.plots.figures import write_figure
from kbert.tasks.captioning.attention_maps import word_maps
from kbert.training.config.captioning_config import CaptioningConfig
from kbert.training.run import train
from kbert.training.runs.load_model import load_model
from kbert.training.runs.run_directory import load_run

SPLIT = (800, 50, 50)
SETTINGS: dict[str, Any] = {
    "network_layer": "map",
    "train_network": True,
    "vocabulary_size": 160,
    "hidden_dim": 128,
    "dropout": 0.1,
    "attention_penalty": 0.0,
    "epochs": 24,
    "learning_rate": 3e-3,
    "batch_size": 32,
}
_SIZE = 64
# Image of the test part that is shown, and how many of its words fit into a line.
_SHOWN, _WORDS = 3, 4
# Characters from dark to bright.
SHADES = " \u2591\u2592\u2593\u2588"


def demo_captioning(output: Path, console: Console) -> dict[str, Any]:
    """Trains a toy captioner, and shows a caption with the attention of its words."""
    console.print(
        f"A toy: {SPLIT[0]} drawn pictures with three captions each. A small network that sees and "
        "a decoder that attends to its map, learn together from nothing."
    )
    run = load_run(train(captioning_config(output)))
    metrics = run.metrics["final"]["test"]
    folder = output / "shapes"
    examples = read_captions(folder / CAPTIONS_FILE, folder / IMAGES_FOLDER).split(SPLIT)[2]
    image, references = examples.paths[_SHOWN], (examples.captions or [])[_SHOWN]
    found = word_maps(load_model(run.directory), image)
    table = Table(show_header=False)
    table.add_row("new to it", str(image))
    table.add_row("caption", Text(found.caption, style="bold"))
    table.add_row("references", "\n".join(references))
    console.print(table)
    console.print("Where it looked for each word, bright where it looked most:")
    show_maps(found.words, found.maps, console)
    console.print(
        f"BLEU-4 {metrics['bleu_4']:.1f}, chrF {metrics['chrf']:.1f}, ROUGE-L "
        f"{metrics['rouge_l']:.1f} on {metrics['images']} such pictures: numbers of a toy."
    )
    picture = write_figure(
        plot_caption(found.pixels, found.words, found.maps, found.caption), output / "caption.png"
    )
    console.print(f"Files: {run.directory}/, {folder}/, and the picture of these maps, {picture}")
    return {"test": metrics, "run": run.directory, "caption": found.caption, "picture": picture}


def captioning_config(output: Path) -> CaptioningConfig:
    """Draws the pictures and makes the network; returns the configuration of the toy's run."""
    folder, network = output / "shapes", output / "shapes.keras"
    shutil.rmtree(folder, ignore_errors=True)
    write_drawn_shapes(folder, sum(SPLIT), size=_SIZE)
    new_network().save(network)
    data = {"train": str(folder / CAPTIONS_FILE), "images": str(folder / IMAGES_FOLDER)}
    place = {"output": str(output / "captioner"), "overwrite": True, "network": str(network)}
    split = ",".join(map(str, SPLIT))
    return CaptioningConfig.from_dict({"split": split, **data, **place, **SETTINGS})


def new_network() -> keras.Model:
    """Returns a convolutional network for pictures (B, 64, 64, 3), to a map (B, 8, 8, 128)."""
    keras.utils.set_random_seed(1)
    pixels = keras.Input((_SIZE, _SIZE, 3))
    states = keras.layers.Rescaling(1 / 127.5, -1)(pixels)
    for channels, name in ((32, "first"), (64, "second"), (128, "map")):
        layer = keras.layers.Conv2D(
            channels, 3, strides=2, padding="same", activation="relu", name=name
        )
        states = layer(states)
    return keras.Model(pixels, states, name="shapes")


def show_maps(words: Sequence[str], maps: np.ndarray, console: Console) -> None:
    """Prints the map (h, w) of each word as shades, a few words side by side."""
    for start in range(0, len(words), _WORDS):
        table = Table(box=None, pad_edge=False)
        shown = range(start, min(start + _WORDS, len(words)))
        for number in shown:
            table.add_column(words[number])
        table.add_row(*(Text(_shaded(maps[number])) for number in shown))
        console.print(table)


def _shaded(weights: np.ndarray) -> str:
    """Returns rows of shades, two characters a place: letters are twice as high as wide."""
    levels = np.rint(4 * weights / (float(weights.max()) or 1.0)).astype(int)
    return "\n".join("".join(2 * SHADES[level] for level in row) for row in levels)
