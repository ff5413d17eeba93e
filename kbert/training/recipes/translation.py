"""Training of a translator on sentence pairs."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbert.tasks.translation.model import Translator
from kbert.text.subword import Subword
from kbert.training.callbacks.epoch_record import EpochRecord
from kbert.training.callbacks.state_saver import pieces_of
from kbert.training.config.translation_config import SEARCHED, TranslationConfig
from kbert.training.recipes.recipe import EpochRecipe, held_out
from kbert.training.runs.run_directory import CHECKPOINTS, MODEL, tell_stage
from kbert.training.runs.stopped_runs import changed_data
from kbert.training.runs.train_state import (
    Position,
    initial_weights,
    order_of,
    sha256_of_arrays,
)
from kbert.training.translation import evaluation, examples, inputs
from kbert.training.translation import model as models

EPOCHS = "epochs"
# With the tokenized pairs they determine the next batch.
_OF_THE_ORDER = ("batch_tokens", "accumulation_steps", "seed")


class TranslationTraining(EpochRecipe):
    """The recipe of a run on sentence pairs."""

    config: TranslationConfig
    data: examples.TranslationData | None
    leftovers = (*EpochRecipe.leftovers, EPOCHS)
    read = staticmethod(examples.read_translation_data)
    _subwords: tuple[Subword, Subword]

    def prepare(self, kept: Path | None) -> None:
        config = self.config
        if config.target_language is not None:
            evaluation.check_language(config.target_language, "target_language")
        warm = models.load_warm_start(config)
        # Its errors must come before the data are read.
        inputs.train_buckets(config, None if warm is None else warm.max_source_length)
        data = examples.read_translation_data(config) if self.data is None else self.data
        if kept is not None:
            changed_data(kept, data.hashes, config.allow_config_change)
        if warm is None:
            learned = config.source_subwords is None
            tell_stage("learning subwords" if learned else "reading subwords")
            self._subwords = examples.run_subwords(config, data, kept)
        else:
            self._subwords = warm.source_subwords, warm.target_subwords
        built = models.build_translator(config, self._subwords, warm)
        self.model = built.model
        begun_with = {
            "bert": getattr(built.model.transformer, "bert", None),
            "warm_start": None if warm is None else warm.transformer,
        }
        weights = initial_weights(kept, **begun_with)
        tell_stage("tokenizing")
        if data.test is not None:
            # They are tokenized in the evaluation, by the model that was written.
            inputs.check_pairs(data.test)
        self._texts = data.parts
        self._parts = {part: self._prepared(part) for part in data.parts if part != "test"}
        about = evaluation.translation_report(config, data, built, self._parts)
        self.report = {**about, **weights}
        models.compile_translator(self.model, config, self.report["steps_per_epoch"])
        if 2 * self.report["steps"] < self.report["warmup_steps"]:
            self.log.warn(evaluation.only_warm_up(self.report))
        self.report["warnings"] = list(self.log.warnings)
        self.log.line(evaluation.translation_lines(self.report, self._parts))
        packed = self._parts["train"].packed
        sides = (packed.sources, packed.targets)
        arrays = [array for side in sides for array in (side.token_ids, side.lengths)]
        options = (getattr(config, key) for key in _OF_THE_ORDER)
        buckets = inputs.train_buckets(config, self.model.max_source_length)
        self.order = order_of(sha256_of_arrays(*arrays), buckets, *options)

    def _prepared(self, part: str) -> inputs.PreparedPairs:
        """Returns the tokenized pairs of a part; of training pairs, those within the limits."""
        given: dict[str, Any] = {"features": self.config.features}
        if part == "train":
            most = self.model.max_source_length - 1
            longest = min(most, self.config.max_length or most)
            given |= {"max_length": longest, "max_ratio": self.config.max_ratio}
        return inputs.prepare_pairs(self.model, self._texts[part], **given)

    def write_start(self, folder: Path) -> None:
        examples.write_subwords(self._subwords, folder)

    def new_record(self, folder: Path) -> EpochRecord:
        config = self.config
        measured = searcher = None
        if "validation" in self._parts:
            if config.monitor in SEARCHED:
                searcher = evaluation.searcher_of(self.model, config.validation_beam)
            measured = evaluation.MeasuredPairs(self._parts["validation"], searcher)
        kept = folder / CHECKPOINTS if config.average is None else None
        tokens = self._parts["train"].tokens
        return EpochRecord(config, measured, config.monitor, tokens, kept, self.log)

    def batches(self, epoch: int, batch: int) -> Any:
        return self._parts["train"].dataset(
            self.model,
            batch_tokens=self.config.batch_tokens,
            buckets=inputs.train_buckets(self.config, self.model.max_source_length),
            accumulation_steps=self.config.accumulation_steps,
            shuffle=True,
            seed=self.config.seed,
            first_epoch=epoch,
            first_batch=batch,
        )

    def pieces(self) -> Mapping[str, Any]:
        sides = zip(("source", "target"), self._subwords)
        return {f"{side}_token_ids": pieces_of(subwords.pieces) for side, subwords in sides}

    def callbacks(self, folder: Path, position: Position) -> list[Any]:
        models.remove_weights_after(folder / EPOCHS, position.epoch)
        average = self.config.average
        return [] if average is None else [models.WeightsKeeper(folder / EPOCHS, average)]

    def write_model(self, folder: Path) -> dict[str, Any]:
        if self.config.average is None:
            return {**super().write_model(folder), "averaged_epochs": None}
        epochs = models.kept_weights(folder / EPOCHS)
        models.average_weights(self.model, epochs)
        shutil.rmtree(folder / MODEL, ignore_errors=True)  # from before a stop
        self.model.save_pretrained(folder / MODEL)
        averaged = [int(epoch.name.rpartition("-")[2]) for epoch in epochs]
        return {"kept_epoch": None, "averaged_epochs": averaged}

    def measured(self, folder: Path) -> dict[str, Any]:
        # In float32, in which the model is used.
        model = Translator.from_pretrained(folder, dtype="float32")
        language, features = self.config.target_language, self.config.features
        return {
            part: evaluation.measure_translator(model, text, language, features)[0]
            for part, text in held_out(self._texts)
        }
