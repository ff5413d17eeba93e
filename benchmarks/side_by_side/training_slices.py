"""Slices of training by several contenders as rows of a table."""

import statistics
from typing import Any

from side_by_side.contender import Contender


def rows_of(played: list[Contender], task: str, examples: int) -> list[dict[str, Any]]:
    """One row for each contender, in real tokens a second.

    Args:
        played: contenders that have trained slices of steps; kbert is the first.
        task: what is trained.
        examples: how many an epoch has: the time of tokenization is shared out over an epoch.
    """
    rows: list[dict[str, Any]] = []
    kbert_speed = 0.0
    for contender in played:
        slices = contender.answers.get("train")
        if not slices:
            continue
        steps, tokens, cells = (sum(s[key] for s in slices) for key in ("steps", "tokens", "cells"))
        epochs = steps * 32 / examples
        before = contender.facts.get("tokenization", 0.0) * epochs
        seconds = sum(s["seconds"] for s in slices) + before
        speed = tokens / seconds
        kbert_speed = kbert_speed or speed
        by_slice = [s["tokens"] / s["seconds"] for s in slices]
        rows.append(
            {
                "task": task,
                "contender": contender.name,
                "steps": steps,
                "seconds": round(seconds, 1),
                "real_tokens_per_second": round(speed),
                "median_of_slices": round(statistics.median(by_slice)),
                "padding_share": round(1 - tokens / cells, 3),
                "kbert_times_as_fast": round(kbert_speed / speed, 3),
            }
        )
    return rows
