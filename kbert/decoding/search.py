"""Beam search and greedy search over any step function, on every Keras backend.

Shapes: B rows of the batch, b rows that are not finished yet, K hypotheses a row, V tokens,
L longest hypothesis, n best hypotheses returned.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from keras import ops

from kbert.decoding.active_rows import decoded, longest_of, of_parents
from kbert.decoding.scores import Pieces, best_continuations, check_beam, in_pieces, log_sum_exp

Step = Callable[[Any, Any, Any, Any], tuple[Any, Any]]


class Hypotheses(NamedTuple):
    """The best sequences of B rows, the best first."""

    # int32 (B, n, L), without the start token, with the end token and padded with it.
    token_ids: Any
    lengths: Any  # int32 (B, n), tokens with the end token; 0 where a row has fewer than n
    # float32 (B, n), log-probability divided by the length penalty; -inf where a row has fewer.
    scores: Any
    log_probabilities: Any  # float32 (B, n), of the sequences


def best_sequences(step: Step, state: Any, rows: Any, beam_size: int, **given: Any) -> Hypotheses:
    """Searches greedily where there is one hypothesis a row, and with a beam where there are more.

    `**given` are arguments of `beam_search`; greedy search has no use for the number of sequences
    and the patience, and none for a fewest number of tokens. Scores are divided by the length
    penalty in both.
    """
    if beam_size > 1 or given.get("min_length", 1) > 1:
        return beam_search(step, state, rows, beam_size=beam_size, **given)
    names = ("start_id", "end_id", "max_lengths", "capacity", "candidates")
    found = greedy_search(step, state, rows, **{n: given[n] for n in names if n in given})
    penalty = given.get("length_penalty")
    if penalty is None:
        return found
    return found._replace(scores=found.log_probabilities / penalty(ops.maximum(found.lengths, 1)))


def greedy_search(
    step: Step,
    state: Any,
    rows: Any,
    *,
    start_id: int,
    end_id: int,
    max_lengths: Any,
    capacity: int | None = None,
    candidates: Any = None,
) -> Hypotheses:
    """Follows the likeliest token until it is the end token; arguments as in `beam_search`, K = 1.

    At its maximum length a sequence can only end; where it cannot, it is cut there, with the
    probability of what precedes the end token. On TensorFlow finished rows leave the batch.
    Returns one sequence a row; its score is its log-probability.
    """
    limits = ops.cast(ops.convert_to_tensor(max_lengths), "int32")
    longest = longest_of(limits, capacity)
    answers = {
        "token_ids": ops.full((rows, 1, longest), end_id, "int32"),
        "lengths": ops.zeros((rows, 1), "int32"),
        "logs": ops.zeros((rows, 1), "float32"),
    }
    values = {**answers, "limit": limits, "state": state, "done": limits < 1}
    values["last"] = ops.full((rows, 1), start_id, "int32")
    follow = partial(_followed, step, end_id, candidates)
    answers = decoded(follow, values, answers, limits, longest)
    return Hypotheses(*(answers[key] for key in ("token_ids", "lengths", "logs", "logs")))


def _followed(
    step: Step, end_id: int, candidates: Any, values: dict[str, Any], time: Any
) -> dict[str, Any]:
    """Adds the likeliest token to every sequence."""
    slots = ops.zeros_like(values["token_ids"])
    logits, state = step(values["last"], time, slots, values["state"])
    pieces = in_pieces(logits, 1)
    total = log_sum_exp(pieces)  # (b, 1)
    best, _, likeliest = best_continuations(pieces, -total, 1, candidates)
    ended, at_limit = values["done"], values["limit"] <= time + 1
    forced = ops.logical_or(ended, at_limit)
    token = ops.where(forced, end_id, likeliest[:, 0])
    ending = pieces.logits[:, 0, end_id if candidates is None else 0]
    gained = ops.where(forced, ending - total[:, 0], best[:, 0])
    # A sequence that cannot end is cut, which has no probability.
    impossible = ops.logical_and(at_limit, gained <= -float("inf"))
    gained = ops.where(ops.logical_or(ended, impossible), 0.0, gained)
    here = ops.equal(ops.arange(ops.shape(values["token_ids"])[2], dtype="int32"), time)
    return {
        **values,
        "state": state,
        "token_ids": ops.where(here, token[:, None, None], values["token_ids"]),
        "last": token[:, None],
        "logs": values["logs"] + gained[:, None],
        "lengths": ops.where(ended[:, None], values["lengths"], time + 1),
        "done": ops.logical_or(ended, ops.equal(token, end_id)),
    }


def beam_search(
    step: Step,
    state: Any,
    rows: Any,
    *,
    beam_size: int,
    start_id: int,
    end_id: int,
    max_lengths: Any,
    length_penalty: Callable[[Any], Any] | None = None,
    nbest: int = 1,
    min_length: int = 1,
    patience: float | None = None,
    capacity: int | None = None,
    candidates: Any = None,
) -> Hypotheses:
    """Finds the n (`nbest`) sequences of highest log-probability divided by the length penalty.

    Of the 2K best continuations of a row's K (`beam_size`) hypotheses, those among the first K that
    end are finished; the K best others stay alive. A row is finished when it has n sequences that
    no live hypothesis can beat any more, or at its maximum length, where a hypothesis can only end.
    With K as large as the number of all prefixes the result is that of an exhaustive search. A row
    in which nothing ends has its likeliest sequence, cut at the maximum length, with the
    probability of what precedes the end; or one of score -inf.

    Finished rows leave the batch on TensorFlow; elsewhere shapes are static, and the results are
    the same.

    Args:
        step: takes `tokens` int32 (b, k), the last token of each hypothesis; `time`, an int32
            scalar, the number of tokens before; `slots` int32 (b, k, L); and `state`. Returns
            logits (b, k, V) of the next token, log-probabilities up to a constant, and the new
            state. k is 1 at time 0, then K. Hypothesis k passed through slot `slots[b, k, s]` at
            time s <= `time`: a model caches what it computes for each time and slot, and masks
            what is not on a hypothesis' own path. Nothing has to move when hypotheses are
            reordered.
        state: tensors in any structure, the first dimension of each being that of the rows.
        max_lengths: int (B,), at least 1, the most tokens of each row, with the end token.
        length_penalty: maps lengths to penalties, monotone; None for no penalty.
        min_length: the fewest tokens, with the end token.
        patience: stops a row at `patience` times K finished sequences, rounded half up, and at
            least one, even if a better one is possible: 1 is what fairseq and CTranslate2 do.
            None stops only when no better one is possible.
        capacity: L, where it must be known before `max_lengths` is (JAX' `jit`).
        candidates: int32 (C,), the tokens that logits (b, k, C) are of, where these are not of the
            whole vocabulary: the end token first, and as many as `shortlist_multiple` of 2K allows.
    """
    check_beam(beam_size, nbest)
    if min_length < 1:
        raise ValueError(f"`min_length` must be at least 1. Received: min_length={min_length}")
    if patience is not None and not patience > 0.0:
        raise ValueError(f"`patience` must be positive or None. Received: patience={patience}")
    limits = ops.cast(ops.convert_to_tensor(max_lengths), "int32")
    ends = start_id, end_id, length_penalty, nbest, min_length, patience, candidates
    return _Search(step, beam_size, *ends).run(state, rows, limits, longest_of(limits, capacity))


@dataclass(frozen=True)
class _Search:
    """The settings of a search. Loop variables are dicts of tensors, the rows first."""

    step: Step
    beam_size: int
    start_id: int
    end_id: int
    length_penalty: Callable[[Any], Any] | None
    nbest: int
    min_length: int
    patience: float | None
    candidates: Any

    def run(self, state: Any, rows: Any, limits: Any, longest: Any) -> Hypotheses:
        """Runs the whole search."""
        answers = {
            "token_ids": ops.full((rows, self.nbest, longest), self.end_id, "int32"),
            "lengths": ops.zeros((rows, self.nbest), "int32"),
            "scores": ops.full((rows, self.nbest), -float("inf"), "float32"),
            "logs": ops.full((rows, self.nbest), -float("inf"), "float32"),
        }
        values = {
            **answers,
            "limit": limits,
            "state": state,
            "found": ops.zeros((rows,), "int32"),
            "done": ops.zeros((rows,), "bool"),
            "tokens": ops.full((rows, 1, longest), self.end_id, "int32"),
            "slots": ops.zeros((rows, 1, longest), "int32"),
            "living": ops.zeros((rows, 1), "float32"),
            "last": ops.full((rows, 1), self.start_id, "int32"),
        }
        answers = decoded(self._advance, values, answers, limits, longest)
        return Hypotheses(*(answers[key] for key in ("token_ids", "lengths", "scores", "logs")))

    def _advance(self, values: dict[str, Any], time: Any) -> dict[str, Any]:
        """Adds one token to every hypothesis."""
        here = ops.equal(ops.arange(ops.shape(values["tokens"])[2], dtype="int32"), time)  # (L,)
        own = ops.arange(values["living"].shape[1], dtype="int32")[:, None]
        slots = ops.where(here, own, values["slots"])
        logits, state = self.step(values["last"], time, slots, values["state"])
        pieces = in_pieces(logits, 2 * self.beam_size)
        offsets = values["living"] - log_sum_exp(pieces)
        allowed = self._allowed(pieces, time + 1, values["limit"])
        best = best_continuations(allowed, offsets, 2 * self.beam_size, self.candidates)
        score, parent, token = best
        before = of_parents(values["tokens"], parent)  # (b, 2K, L)
        tokens = ops.where(here, token[:, :, None], before)
        ends = ops.equal(token, self.end_id)
        living, chosen = ops.top_k(ops.where(ends, -float("inf"), score), self.beam_size)
        # Where nothing can end at the last length, the likeliest unfinished sequence replaces it.
        unfinished = values["tokens"][:, :1], values["living"][:, :1]
        values = {
            **values,
            **self._with_found(values, tokens, score, ends, time + 1),
            "state": state,
            "tokens": of_parents(tokens, chosen),
            "slots": of_parents(of_parents(slots, parent), chosen),
            "last": of_parents(token[:, :, None], chosen)[:, :, 0],
            "living": living,
        }
        return self._judged(values, *unfinished, time + 1)

    def _allowed(self, pieces: Pieces, length: Any, limits: Any) -> Pieces:
        """Masks the end token below the minimum length, all others at the maximum length."""
        at_limit = ops.equal(limits, length)  # (b,)
        size, end = ops.shape(pieces.logits)[-1], self.end_id if self.candidates is None else 0
        ending = ops.equal(ops.arange(size, dtype="int32"), end)  # (V,)

        def masked() -> Any:
            may_end = ops.logical_or(length >= self.min_length, at_limit[:, None, None])
            may_go_on = ops.logical_not(at_limit)[:, None, None]
            may = ops.where(ending, may_end, may_go_on)
            return in_pieces(ops.where(may, pieces.logits, -float("inf")), 2 * self.beam_size)[:2]

        # Mostly there is nothing to mask, and two passes over (b, K, V) are saved.
        needed = ops.logical_or(ops.any(at_limit), length < self.min_length)
        return Pieces._make((*ops.cond(needed, masked, lambda: pieces[:2]), pieces.size))

    def _with_found(
        self, values: dict[str, Any], tokens: Any, score: Any, ends: Any, length: Any
    ) -> dict[str, Any]:
        """Returns the best finished sequences, with the continuations that end among them."""
        first = self.beam_size
        is_new = ops.logical_and(ends[:, :first], score[:, :first] > -float("inf"))
        logs = ops.where(is_new, score[:, :first], -float("inf"))
        new = {
            "token_ids": tokens[:, :first],
            "lengths": ops.where(is_new, length, 0),
            "logs": logs,
            "scores": self._by_length(logs, length),
        }
        joined = {key: ops.concatenate([values[key], new[key]], axis=1) for key in new}
        best, chosen = ops.top_k(joined.pop("scores"), self.nbest)
        found = {key: of_parents(column, chosen) for key, column in joined.items()}
        count = values["found"] + ops.sum(ops.cast(is_new, "int32"), axis=1)
        return {**found, "scores": best, "found": count}

    def _by_length(self, logs: Any, length: Any) -> Any:
        return logs if self.length_penalty is None else logs / self.length_penalty(length)

    def _judged(
        self, values: dict[str, Any], tokens: Any, logs: Any, length: Any
    ) -> dict[str, Any]:
        """Marks the rows that are done; those without any sequence get their unfinished one."""
        living, was_done = values["living"], values["done"]
        # The log-probability only falls, and the penalty is monotone: one of its ends is the best.
        at_once = self._by_length(living[:, 0], length + 1)
        at_last = self._by_length(living[:, 0], values["limit"])
        bound = ops.maximum(at_once, at_last)
        done = ops.logical_or(values["limit"] <= length, bound <= values["scores"][:, -1])
        if self.patience is not None:
            # (Python's `round` takes 2.5 to 2, C++'s to 3.)
            enough = max(1, math.floor(self.patience * self.beam_size + 0.5))
            done = ops.logical_or(done, values["found"] >= enough)
        done = ops.logical_or(was_done, done)
        now = ops.logical_and(done, ops.logical_not(was_done))
        lacks = ops.logical_and(now, ops.equal(values["found"], 0))[:, None]  # (b, 1)
        lacks = ops.logical_and(lacks, ops.equal(ops.arange(self.nbest, dtype="int32"), 0))
        logs = ops.where((values["limit"] <= length)[:, None], logs, -float("inf"))
        scores = self._by_length(logs, length)
        return {
            **values,
            "done": done,
            # Done rows stay as they are while they wait for others: no hypothesis is alive.
            "living": ops.where(done[:, None], -float("inf"), living),
            "lengths": ops.where(lacks, length, values["lengths"]),
            "logs": ops.where(lacks, logs, values["logs"]),
            "scores": ops.where(lacks, scores, values["scores"]),
            "token_ids": ops.where(lacks[:, :, None], tokens, values["token_ids"]),
        }
