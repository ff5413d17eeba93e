"""Step functions that spell from a table, for the tests of search; they run on any backend.

A prefix has a number (`number_of`), and a table gives the log-probabilities after it. The step
function works out the prefix of each hypothesis from the slots that it is given and from what it
was told at each time and slot, as a model with a cache does. Whatever the caller does wrong (state
and rows out of step, a false start token, slots that do not end in their own slot) makes all
numbers after it wrong, in a graph as well.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from keras import ops

from tests.decoding.reference import Prefix, Speaker

START = 1


def number_of(prefix: Sequence[int], vocabulary_size: int, numbers: int) -> int:
    """0 for nothing, then as if the tokens were digits; a hash where there are too few numbers."""
    number = 0
    for token in prefix:
        number = (number * vocabulary_size + token + 1) % numbers
    return number


def random_tables(
    rows: int,
    numbers: int,
    vocabulary_size: int,
    seed: int,
    sharpness: float = 1.0,
    holes: float = 0.0,
) -> np.ndarray:
    """Log-probabilities (rows, numbers, V) float32; a share `holes` of them is -inf."""
    draw = np.random.default_rng(seed)
    scores = draw.normal(0.0, sharpness, (rows, numbers, vocabulary_size))
    scores[draw.random(scores.shape) < holes] = -math.inf
    return normalized(scores)


def normalized(scores: np.ndarray) -> np.ndarray:
    """Scores (..., V) as log-probabilities, float32; where all are -inf they stay so."""
    scores = scores.astype("float64")
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(scores).sum(-1, keepdims=True))
    return np.where(total > -math.inf, scores - np.maximum(total, -1e300), scores).astype("float32")


def table_of(
    distributions: Mapping[str, Mapping[str, float]], letters: str, max_length: int
) -> np.ndarray:
    """The table (numbers, V) of prefixes written as words.

    Args:
        distributions: prefix -> letter -> probability. Letters that are not named have
            probability 0; after prefixes that are not named the last letter is certain.
        letters: letter of each token.
        max_length: longest prefix that has a number of its own.
    """
    size = len(letters)
    table = np.zeros((sum(size**length for length in range(max_length + 1)), size), "float32")
    table[:, -1] = 1.0
    for word, probabilities in distributions.items():
        number = number_of([letters.index(letter) for letter in word], size, len(table))
        table[number] = [probabilities.get(letter, 0.0) for letter in letters]
    with np.errstate(divide="ignore"):
        return np.log(table)


def speaker_of(table: np.ndarray) -> Speaker:
    """The plain Python form of one row's table (numbers, V)."""
    numbers, size = table.shape

    def speaker(prefix: Prefix) -> list[float]:
        return [float(x) for x in table[number_of(prefix, size, numbers)]]

    return speaker


class Speller:
    """The step function of the tables of some rows.

    Args:
        tables: (R, P, V) float32; the state says which of the R rows a row is.
        slots: K, the most hypotheses of a row.
        longest: the most times that can come.
    """

    def __init__(self, tables: Any, slots: int, longest: int) -> None:
        self.tables = ops.convert_to_tensor(tables, dtype="float32")
        self.slots, self.longest = slots, longest
        self.beams: list[int] = []

    def state(self, rows: Any) -> dict[str, Any]:
        """The state at the start, for the rows with these ids (B,) int32."""
        rows = ops.convert_to_tensor(rows, dtype="int32")
        nothing = ops.zeros((1, self.slots, self.longest), dtype="int32")
        told = ops.zeros_like(rows)[:, None, None] + nothing
        twice = ops.cast(rows, "float32")[:, None] * ops.convert_to_tensor([1.0, 2.0])
        return {"row": rows, "more": (told, [twice])}

    def __call__(self, tokens: Any, time: Any, slots: Any, state: Any) -> tuple[Any, Any]:
        """Log-probabilities (B, K, V) and the state, as the contract of a step has it."""
        beam = tokens.shape[1]
        self.beams.append(beam)
        told, (twice,) = state["more"]
        told = self._remember(told, tokens, time, beam)
        said, slots = self._paths(told, slots, beam)  # (B, K, longest)
        times = ops.arange(self.longest, dtype="int32")
        size, numbers = self.tables.shape[2], self.tables.shape[1]
        # `number_of` at once: each digit counts as many times as those after it make it.
        powers = ops.convert_to_tensor([pow(size, n, numbers) for n in range(self.longest)])
        counts = ops.take(ops.cast(powers, "int32"), ops.maximum(time - times, 0), axis=0)
        counts = ops.where((times > 0) & (times <= time), counts, 0)
        number = ops.sum((said + 1) * counts, axis=-1) % numbers
        flat = ops.reshape(self.tables, (-1, size))
        found = ops.take(flat, state["row"][:, None] * numbers + number, axis=0)
        now = ops.sum(ops.where(times == time, slots, 0), axis=-1)  # (B, K)
        row = ops.cast(state["row"], "float32")[:, None]
        right = (said[:, :, 0] == START) & (now == ops.arange(beam, dtype="int32"))
        right = right & (twice[:, :1] == row) & (twice[:, 1:] == 2 * row)
        found = ops.where(right[:, :, None], found, -7.0)
        return found, {"row": state["row"], "more": (told, [twice])}

    def _remember(self, told: Any, tokens: Any, time: Any, beam: int) -> Any:
        """Writes the tokens (B, K) at their time and slots."""
        unused = ops.zeros_like(told[:, beam:, 0])
        tokens = ops.concatenate([tokens, unused], axis=1) if beam < self.slots else tokens
        times = ops.arange(self.longest, dtype="int32")
        return ops.where(times == time, tokens[:, :, None], told)

    def _paths(self, told: Any, slots: Any, beam: int) -> tuple[Any, Any]:
        """What was told along each hypothesis's own slots, and the slots, both (B, K, longest)."""
        more = ops.zeros_like(told[:, :beam])
        slots = ops.concatenate([slots, more], axis=2)[:, :, : self.longest]
        slots = ops.reshape(slots, (-1, beam, self.longest))
        by_time = ops.transpose(told, (0, 2, 1))[:, None]  # (B, 1, longest, K)
        own = slots[..., None] == ops.arange(self.slots, dtype="int32")
        return ops.sum(ops.where(own, by_time, 0), axis=-1), slots


def plain_step(table: np.ndarray) -> Any:
    """A step function without state, for one token of context: (V, V), row = last token."""
    table = ops.convert_to_tensor(table, dtype="float32")

    def step(tokens: Any, time: Any, slots: Any, state: Any) -> tuple[Any, Any]:
        return ops.take(table, tokens, axis=0), state

    return step
