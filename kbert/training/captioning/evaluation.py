"""Metrics of a captioner, and the facts of its run before the first step."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.captions.caption_batches import PackedCaptions
from kbert.data.captions.captioned_images import CaptionExamples
from kbert.metrics.bleu import caption_metrics
from kbert.tasks.captioning.model import Captioner

_FORCED = ("loss", "perplexity", "accuracy")
# Captions a batch where nothing is learned.
_ROWS = 64


def measure_captioner(
    model: Captioner, examples: CaptionExamples, features: str | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Captions images, and scores the captions by their references.

    Returns the metrics as JSON types: those of `caption_metrics`, "loss", "perplexity" and
    "accuracy" of the next piece of the references, and "images"; and the captions.
    """
    captions = model.captions(examples.paths)
    packed = model.batching.pack(examples.paths, examples.captions, features)
    found = {**caption_metrics(captions, examples.captions or []), **teacher_forced(model, packed)}
    return {**found, "images": len(examples)}, captions


def teacher_forced(model: Captioner, packed: PackedCaptions) -> dict[str, float]:
    """Measures the prediction of the next piece of captions; means over all pieces."""
    if not model.compiled:
        model.compile()
    dataset = model.dataset(packed, batch_size=_ROWS)
    found = model.evaluate(dataset, verbose=0, return_dict=True)
    return {name: float(found[name]) for name in _FORCED}


@dataclass(frozen=True)
class MeasuredCaptions:
    """Validation captions of the epochs; with `searches`, images are captioned too, greedily."""

    packed: PackedCaptions
    examples: CaptionExamples
    searches: bool

    def measured(self, model: Captioner) -> dict[str, Any]:
        """Returns the metrics of an epoch."""
        found: dict[str, Any] = teacher_forced(model, self.packed)
        if self.searches:
            beam, model.beam_size = model.beam_size, 1
            nbest, model.nbest = model.nbest, 1
            try:
                captions = model.captions(self.examples.paths)
            finally:
                model.beam_size, model.nbest = beam, nbest
            found |= caption_metrics(captions, self.examples.captions or [])
        return found


def captioning_report(
    model: Captioner,
    packed: dict[str, PackedCaptions],
    examples: dict[str, CaptionExamples],
    steps: int,
) -> dict[str, Any]:
    """Returns facts of a run before its first step, as JSON types."""
    weights = [np.prod(variable.shape) for variable in model.trainable_variables]
    return {
        "examples": {
            part: {
                "count": len(examples[part]),
                "source": examples[part].source,
                "captions": len(one),
                "tokens": int(one.captions.lengths.sum()),
                "longest": int(one.captions.lengths.max()),
                "truncated_share": float(one.captions.truncated.mean()),
            }
            for part, one in packed.items()
        },
        "subwords": len(model.subwords),
        "map": [*model.extractor.map_shape, model.extractor.feature_dim],
        "steps": steps,
        "parameters": int(sum(weights)),
    }


def captioning_lines(report: dict[str, Any]) -> str:
    """Returns a report as readable text."""
    lines = [
        f"{part}: {about['count']} images, {about['captions']} captions, {about['tokens']} "
        f"tokens, the longest has {about['longest']}; {about['truncated_share']:.1%} were cut"
        for part, about in report["examples"].items()
    ]
    height, width, channels = report["map"]
    lines.append(f"subwords: {report['subwords']}; map: {height} x {width}, {channels} channels")
    lines.append(f"steps: {report['steps']}; parameters: {report['parameters']:,}")
    return "\n".join(lines)
