"""The protocol: kbert's models have it, and a recurrent decoder that follows it is searched."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from keras import ops

from kbert.decoding.search import beam_search
from kbert.models.encoder_decoders.encoder_decoder import EncoderDecoder
from tests.small_translator import small_translator

END, START, VOCABULARY, LONGEST, WIDTH = 0, 1, 4, 4, 3


@pytest.mark.parametrize("fused", [False, True])
def test_the_transformers_have_it(fused: bool):
    assert isinstance(small_translator(fused).transformer, EncoderDecoder)


class Recurrent:
    """h' = tanh(E[token] + W h), logits U h; the source is the first state."""

    source_vocabulary_size = vocabulary_size = VOCABULARY
    max_sequence_length, hidden_dim, num_decoder_layers, num_heads = LONGEST, WIDTH, 1, 1
    bert = None

    def __init__(self, seed: int) -> None:
        self.seed = seed
        draw = np.random.default_rng(seed)
        self.embeddings = draw.normal(size=(VOCABULARY, WIDTH)).astype("float32")
        self.recurrent = draw.normal(size=(WIDTH, WIDTH)).astype("float32")
        self.output = draw.normal(size=(WIDTH, VOCABULARY)).astype("float32")

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return self.logits(self.target_states(inputs["target_token_ids"], self.encode(inputs)))

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed}

    def encode(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        return {"states": inputs["source_states"]}

    def target_states(self, target_token_ids: Any, memory: Any, training: Any = None) -> Any:
        state, found = memory["states"], []
        for column in ops.unstack(target_token_ids, axis=1):
            state = self._next(column, state)
            found.append(state)
        return ops.stack(found, axis=1)

    def logits(self, states: Any) -> Any:
        return ops.matmul(states, self.output)

    def start_decoding(self, memory: Any, slots: int = 1, capacity: int | None = None) -> Any:
        # Room for K slots from the beginning; the first step reads slot 0.
        return ops.repeat(memory["states"][:, None], slots, axis=1)

    def decode_step(self, token_ids: Any, time: Any, slots: Any, state: Any) -> tuple[Any, Any]:
        before = ops.take(slots, ops.maximum(time - 1, 0), axis=2)
        parents = ops.where(time > 0, before, 0)
        parent_states = ops.take_along_axis(state, parents[:, :, None], axis=1)
        new = self._next(token_ids, parent_states)
        room = ops.shape(state)[1] - ops.shape(new)[1]
        return self.logits(new), ops.pad(new, ((0, 0), (0, room), (0, 0)))

    def memory_scores(self, target_token_ids: Any, memory: Any) -> list[Any]:
        return []

    def _next(self, token_ids: Any, states: Any) -> Any:
        embedded = ops.take(ops.convert_to_tensor(self.embeddings), token_ids, axis=0)
        return ops.tanh(embedded + ops.matmul(states, self.recurrent))


def best_by_hand(model: Recurrent, first: np.ndarray) -> tuple[tuple[int, ...], float]:
    """The likeliest sequence that ends within LONGEST tokens, of all that there are."""
    best: tuple[tuple[int, ...], float] = ((), -math.inf)
    for length in range(1, LONGEST + 1):
        for tokens in itertools.product(range(1, VOCABULARY), repeat=length - 1):
            state, total, token = first, 0.0, START
            for wanted in (*tokens, END):
                state = np.tanh(model.embeddings[token] + state @ model.recurrent)
                scores = state @ model.output
                total += scores[wanted] - np.log(np.exp(scores).sum())
                token = wanted
            best = max(best, ((*tokens, END), float(total)), key=lambda one: one[1])
    return best


@pytest.mark.parametrize("seed", range(4))
def test_a_recurrent_decoder_is_searched_through_its_slots(seed: int):
    model = Recurrent(seed)
    assert isinstance(model, EncoderDecoder)
    first = np.random.default_rng(seed + 9).normal(size=(3, WIDTH)).astype("float32")
    # As many hypotheses as there are prefixes: nothing is lost.
    beam = 3 ** (LONGEST - 1)
    memory = model.encode({"source_states": ops.convert_to_tensor(first)})
    found = beam_search(
        model.decode_step,
        model.start_decoding(memory, beam),
        3,
        beam_size=beam,
        start_id=START,
        end_id=END,
        max_lengths=[LONGEST] * 3,
    )
    for row in range(3):
        tokens, total = best_by_hand(model, first[row])
        length = int(found.lengths[row, 0])
        assert tuple(ops.convert_to_numpy(found.token_ids)[row, 0, :length]) == tokens
        assert float(found.log_probabilities[row, 0]) == pytest.approx(total, abs=1e-5)
    inputs = ops.convert_to_tensor([[START, *tokens[:-1]]])
    states = model.target_states(inputs, {"states": ops.convert_to_tensor(first[2:])})
    log = ops.log_softmax(model.logits(states))[0]
    assert sum(float(log[i, t]) for i, t in enumerate(tokens)) == pytest.approx(total, abs=1e-5)
