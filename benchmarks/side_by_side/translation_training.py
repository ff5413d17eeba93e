"""A translator that learns through any number of interruptions, by one recipe."""

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import keras
from side_by_side.translation_batches import batch_shapes

from kbert.data.translation.parallel_pipeline import PackedPairs
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import InverseSquareRootDecay
from kbert.pipelines.frozen_states import frozen_states
from kbert.storage.files import write_atomically
from kbert.tasks.translation.model import Translator
from kbert.training.callbacks.state_saver import Saving, StateSaver, fit_from
from kbert.training.runs.train_state import Position, load_state
from kbert.training.translation.model import WeightsKeeper, average_weights, kept_weights


@dataclass(frozen=True)
class Recipe:
    """How a translator learns.

    Attributes:
        epochs: passes over the pairs.
        rate: the highest one.
        warmup: updates in which the rate rises to it.
        kept: how many of the last epochs' weights are averaged.
        tokens: cells of a side of a batch.
        seed: of the order.
        cooldown: the last epochs, in which the rate falls to 0.
        clip: largest norm of the gradients.
    """

    epochs: int
    rate: float
    warmup: int
    kept: int
    tokens: int
    seed: int
    cooldown: int = 0
    clip: float | None = None


def trained(
    model: Translator,
    pairs: PackedPairs,
    held_out: PackedPairs,
    run: Path,
    recipe: Recipe,
    settings: dict[str, Any],
) -> Translator:
    """Trains on from where a run was stopped, and averages the last epochs.

    Args:
        pairs: to learn.
        held_out: measured after each epoch.
        run: folder of states and model; BERT's states of the pairs are in `features` beside it.
        settings: what else the result depends on.

    Returns:
        The model with the mean of the weights, as it was written to `run / "model"`, in float32.

    Raises:
        ValueError: the run is one of another recipe or of other settings.
    """
    _check_same(run / "recipe.json", {**asdict(recipe), **settings})
    if (run / "model").exists():
        return Translator.from_pretrained(run / "model", dtype="float32")
    cut = batch_shapes(recipe.tokens, pairs, held_out)
    updates = len(list(model.dataset(pairs, **cut)))
    ends = {"total_steps": recipe.epochs * updates, "cooldown_steps": recipe.cooldown * updates}
    rate = InverseSquareRootDecay(recipe.warmup, peak=recipe.rate, **ends)
    model.compile(AdamW(rate, 0.0, 0.9, 0.98, 1e-9, global_clipnorm=recipe.clip))
    states = None
    if pairs.bert is not None:
        states, report = frozen_states(model.transformer.bert, pairs.bert, run.parent / "features")
        print(report, flush=True)
    position = load_state(run / "states", model) or Position()
    print(f"begins at {position}; {model.count_params()} weights", flush=True)

    def batches(epoch: int, batch: int) -> Any:
        options = {**cut, "shuffle": True, "seed": recipe.seed, "bert_states": states}
        return model.dataset(pairs, first_epoch=epoch, first_batch=batch, **options)

    callbacks = [
        WeightsKeeper(run / "epochs", recipe.kept),
        keras.callbacks.LambdaCallback(on_epoch_end=_log_line(time.monotonic())),
        # Behind the others: what a state calls done, they have done.
        StateSaver(Saving(run / "states"), position),
    ]
    held = {"validation_data": model.dataset(held_out, **cut), "callbacks": callbacks}
    fit_from(model, position, recipe.epochs, batches, verbose=0, **held)
    average_weights(model, kept_weights(run / "epochs"))
    model.save_pretrained(run / "model")
    return Translator.from_pretrained(run / "model", dtype="float32")


def _check_same(file: Path, facts: dict[str, Any]) -> None:
    """Writes a new run's settings; those of a resumed one must be the same."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps(facts, indent=1) + "\n")
    elif (before := json.loads(file.read_text())) != facts:
        raise ValueError(
            f"{file.parent} must go on with {before}. Received: {facts}. Give another folder"
        )


def _log_line(begin: float) -> object:
    """Prints what an epoch came to."""

    def line(epoch: int, logs: dict[str, float]) -> None:
        shown = {name: round(value, 4) for name, value in logs.items()}
        print(f"{time.monotonic() - begin:.0f} s, epoch {epoch + 1}: {shown}", flush=True)

    return line
