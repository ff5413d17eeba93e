"""Report of a translation run before its first step."""

from typing import Any

import numpy as np

from kbert.data.translation.parallel_batches import (
    fixed_batch_plan,
    fixed_padding_share,
    parallel_batch_plan,
    parallel_padding_share,
)
from kbert.data.translation.parallel_pipeline import PackedPairs
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.translation.examples import TranslationData
from kbert.training.translation.inputs import PreparedPairs, left_out
from kbert.training.translation.model import Built
from kbert.training.translation.tpu_batches import train_buckets

# Number of names of new weights in a line.
_SHOWN = 3


def translation_report(
    config: TranslationConfig, data: TranslationData, built: Built, parts: dict[str, PreparedPairs]
) -> dict[str, Any]:
    """Returns the report of a run before its first step, as a dict of JSON types.

    Args:
        config: The run's configuration.
        data: The run's pairs, before filtering.
        built: The run's model.
        parts: Part -> its prepared pairs.

    Raises:
        ValueError: There are fewer batches than one update needs.
    """
    model, train = built.model, parts["train"].packed
    count, padding = _batches(config, train, model.max_source_length)
    updates = count // config.accumulation_steps
    if not updates:
        raise ValueError(
            f"`accumulation_steps` must be at most the number of batches, {count}. Received: "
            f"accumulation_steps={config.accumulation_steps}"
        )
    examples = {part: _about(data.parts[part], prepared) for part, prepared in parts.items()}
    weights = [np.prod(variable.shape) for variable in model.trainable_variables]
    return {
        "task": config.task,
        **data.hashes,
        "examples": examples,
        "subwords": {
            "source": len(model.source_subwords),
            "target": len(model.target_subwords),
        },
        "padding_share": padding,
        "batches_per_epoch": updates * config.accumulation_steps,
        "steps_per_epoch": updates,
        "steps": updates * config.epochs,
        "warmup_steps": config.warmup_steps,
        "parameters": int(sum(weights)),
        "warm_start": None if built.warm_start is None else _warm_start(built),
    }


def _batches(config: TranslationConfig, train: PackedPairs, positions: int) -> tuple[int, float]:
    """Returns the number of batches of an epoch, and their share of padding."""
    lengths = (train.sources.lengths, train.targets.lengths)
    random: dict[str, Any] = {"shuffle": True, "seed": config.seed}
    buckets = train_buckets(config, positions)
    if buckets is not None:
        fixed = fixed_batch_plan(*lengths, buckets, **random)
        return len(fixed), fixed_padding_share(*lengths, fixed)
    plan = parallel_batch_plan(*lengths, config.batch_tokens, **random)
    return len(plan), parallel_padding_share(*lengths, plan)


def _about(text: Any, prepared: PreparedPairs) -> dict[str, Any]:
    sides = (prepared.packed.sources, prepared.packed.targets)
    return {
        "count": len(prepared),
        "read": len(text),
        "left_out": left_out(prepared.report),
        "source": text.source,
        "tokens": prepared.tokens,
        "longest": int(max(side.lengths.max() for side in sides)),
        "truncated_share": float(np.mean(sides[0].truncated | sides[1].truncated)),
    }


def _warm_start(built: Built) -> dict[str, Any]:
    found: Any = built.warm_start
    return {
        "loaded": len(found.loaded),
        "new": found.new,
        "missing": found.missing,
        "mismatched": found.mismatched,
    }


def translation_lines(report: dict[str, Any], parts: dict[str, PreparedPairs]) -> str:
    """Returns a report as readable text.

    Args:
        report: From `translation_report`.
        parts: Part -> its prepared pairs.
    """
    lines = []
    for part, about in report["examples"].items():
        lines.append(
            f"{part}: {about['count']} pairs, {about['tokens']} tokens, the longest side has "
            f"{about['longest']}; {about['truncated_share']:.1%} were cut"
        )
        lines += [f"  {line}" for line in str(parts[part].report).split("\n")]
        if parts[part].cached is not None:
            lines.append(f"  {parts[part].cached}")
    pieces = report["subwords"]
    lines.append(f"subwords: {pieces['source']} of the source, {pieces['target']} of the target")
    warm = report["warm_start"]
    if warm is not None:
        shown = ", ".join(warm["new"][:_SHOWN])
        more = ", ..." if len(warm["new"]) > _SHOWN else ""
        lines.append(
            f"warm start: {warm['loaded']} weights taken over, {len(warm['new'])} new"
            f"{f' ({shown}{more})' if shown else ''}, {len(warm['missing'])} without a place, "
            f"{len(warm['mismatched'])} of another shape"
        )
    lines.append(
        f"steps: {report['steps']}, {report['steps_per_epoch']} an epoch "
        f"({report['warmup_steps']} of warm-up); "
        f"padding: {report['padding_share']:.1%} of the batches"
    )
    lines.append(f"parameters: {report['parameters']:,}")
    return "\n".join(lines)
