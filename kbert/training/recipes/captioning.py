"""Training of a captioner on images with captions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbert.data.batches.plans import batch_plan
from kbert.options.configuration import TPU
from kbert.tasks.captioning.image_features import check_images
from kbert.tasks.captioning.model import Captioner
from kbert.training.callbacks.epoch_record import EpochRecord
from kbert.training.callbacks.state_saver import pieces_of
from kbert.training.captioning import evaluation
from kbert.training.captioning.examples import (
    SUBWORDS,
    CaptioningData,
    read_captioning_data,
    run_subwords,
)
from kbert.training.captioning.model import build_captioner, compile_captioner
from kbert.training.config.captioning_config import SEARCHED, CaptioningConfig
from kbert.training.recipes.recipe import EpochRecipe, held_out
from kbert.training.runs.run_directory import CHECKPOINTS, tell_stage
from kbert.training.runs.stopped_runs import changed_data
from kbert.training.runs.train_state import initial_weights, order_of, sha256_of_arrays

# With the tokenized captions they determine the next batch.
_OF_THE_ORDER = ("batch_size", "seed")


class CaptioningTraining(EpochRecipe):
    """The recipe of a run on images with captions."""

    config: CaptioningConfig
    data: CaptioningData | None
    model: Captioner
    read = staticmethod(read_captioning_data)

    def prepare(self, kept: Path | None) -> None:
        config = self.config
        data = read_captioning_data(config) if self.data is None else self.data
        if kept is not None:
            changed_data(kept, data.hashes, config.allow_config_change)
        tell_stage("learning subwords" if config.subwords is None else "reading subwords")
        subwords = run_subwords(config, data, kept)
        self.model = build_captioner(config, subwords)
        # Random weights come from the seed.
        is_random = config.network_weights == "none" and not config.network.endswith(".keras")
        weights = initial_weights(kept, network=None if is_random else self.model.extractor)
        tell_stage("looking at the images")
        self._examples = data.parts
        self._packed = {
            part: self.model.batching.pack(one.paths, one.captions, config.features)
            for part, one in data.parts.items()
            if part != "test"
        }
        if "test" in data.parts:  # before hours of training, not after
            check_images(self.model, data.parts["test"].paths)
        lengths = self._packed["train"].captions.lengths
        if config.strategy == TPU and len(lengths) < config.batch_size:
            raise ValueError(
                f"`batch_size` must be at most the number of captions, {len(lengths)}, on a TPU. "
                f"Received: batch_size={config.batch_size}"
            )
        batches = batch_plan(lengths, config.batch_size)
        whole = [one for one in batches if len(one) == config.batch_size]
        steps = config.epochs * len(whole if config.strategy == TPU else batches)
        about = evaluation.captioning_report(self.model, self._packed, data.parts, steps)
        self.report = {"task": config.task, **data.hashes, **weights, **about}
        compile_captioner(self.model, config, steps)
        self.report["warnings"] = list(self.log.warnings)
        self.log.line(evaluation.captioning_lines(self.report))
        packed = self._packed["train"]
        arrays = (packed.captions.token_ids, lengths, packed.rows)
        options = [getattr(config, key) for key in _OF_THE_ORDER]
        options += [True] * (config.strategy == TPU)  # short batches are left out
        self.order = order_of(sha256_of_arrays(*arrays), *options)

    def write_start(self, folder: Path) -> None:
        self.model.subwords.save(folder / SUBWORDS)

    def new_record(self, folder: Path) -> EpochRecord:
        config, measured = self.config, None
        if "validation" in self._packed:
            searches = config.monitor in SEARCHED
            held_out = self._packed["validation"], self._examples["validation"]
            measured = evaluation.MeasuredCaptions(*held_out, searches)
        tokens = int(self._packed["train"].captions.lengths.sum())
        return EpochRecord(
            config, measured, config.monitor, tokens, folder / CHECKPOINTS, self.log
        )

    def batches(self, epoch: int, batch: int) -> Any:
        config = self.config
        return self.model.dataset(
            self._packed["train"],
            batch_size=config.batch_size,
            shuffle=True,
            seed=config.seed,
            fixed_length=config.max_sequence_length if config.strategy == TPU else None,
            first_epoch=epoch,
            first_batch=batch,
        )

    def pieces(self) -> Mapping[str, Any]:
        return {"target_token_ids": pieces_of(self.model.subwords.pieces)}

    def measured(self, folder: Path) -> dict[str, Any]:
        # In float32, in which the model is used.
        model = Captioner.from_pretrained(folder, dtype="float32")
        return {
            part: evaluation.measure_captioner(model, examples, self.config.features)[0]
            for part, examples in held_out(self._examples)
        }
