"""Greedy search: the likeliest token at each step."""

from typing import Any

from keras import ops

from kbert.decoding.active_rows import decoded, longest_of, with_state
from kbert.decoding.beam_search import Hypotheses, Step
from kbert.decoding.scores import best_continuations, in_pieces, log_sum_exp


def greedy_search(
    step: Step,
    state: Any,
    rows: Any,
    *,
    start_id: int,
    end_id: int,
    max_lengths: Any,
    capacity: int | None = None,
) -> Hypotheses:
    """Follows the likeliest token until it is the end token.

    At its maximum length a sequence can only end; where it cannot, it is cut there, with the
    probability of what precedes the end token. On TensorFlow finished rows leave the batch.

    Args:
        step: a step function with one hypothesis a row, see `kbert.decoding.beam_search`.
        state: tensors in any structure, the rows first; or None.
        rows: B.
        start_id: the start token, which precedes every sequence.
        end_id: the end token.
        max_lengths: int (B,), at least 1, the most tokens of each row, with the end token.
        capacity: L, where it must be known before `max_lengths` is (JAX' `jit`).

    Returns:
        One sequence a row; its score is its log-probability.
    """
    limits = ops.cast(ops.convert_to_tensor(max_lengths), "int32")
    longest = longest_of(limits, capacity)
    step, state = with_state(step, state)
    answers = {
        "token_ids": ops.full((rows, 1, longest), end_id, "int32"),
        "lengths": ops.zeros((rows, 1), "int32"),
        "logs": ops.zeros((rows, 1), "float32"),
    }
    values = {**answers, "limit": limits, "state": state}
    values["last"] = ops.full((rows, 1), start_id, "int32")
    values["done"] = limits < 1

    def advance(values: dict[str, Any], time: Any) -> dict[str, Any]:
        return _advanced(step, values, time, end_id)

    answers = decoded(advance, values, answers, limits, longest)
    logs = answers["logs"]
    return Hypotheses(answers["token_ids"], answers["lengths"], logs, logs)


def _advanced(step: Step, values: dict[str, Any], time: Any, end_id: int) -> dict[str, Any]:
    """Adds one token to every sequence."""
    places = ops.arange(ops.shape(values["token_ids"])[2], dtype="int32")
    slots = ops.zeros_like(values["token_ids"])
    logits, state = step(values["last"], time, slots, values["state"])
    pieces = in_pieces(logits, 1)
    total = log_sum_exp(pieces)  # (b, 1)
    best, _, likeliest = best_continuations(pieces, -total, 1)
    ended, at_limit = values["done"], values["limit"] <= time + 1
    forced = ops.logical_or(ended, at_limit)
    token = ops.where(forced, end_id, likeliest[:, 0])
    gained = ops.where(forced, pieces.logits[:, 0, end_id] - total[:, 0], best[:, 0])
    # A sequence that cannot end is cut, which has no probability.
    impossible = ops.logical_and(at_limit, gained <= -float("inf"))
    gained = ops.where(ops.logical_or(ended, impossible), 0.0, gained)
    written = ops.where(ops.equal(places, time), token[:, None, None], values["token_ids"])
    return {
        "row": values["row"],
        "limit": values["limit"],
        "state": state,
        "token_ids": written,
        "last": token[:, None],
        "logs": values["logs"] + gained[:, None],
        "lengths": ops.where(ended[:, None], values["lengths"], time + 1),
        "done": ops.logical_or(ended, ops.equal(token, end_id)),
    }
