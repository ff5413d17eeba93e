"""What encoder-decoders whose state is replaced at each step do alike, in calls that take one."""

import itertools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.decoding.search import beam_search, greedy_search
from kbert.models.encoder_decoders.encoder_decoder import EncoderDecoder
from kbert.models.weights import encoder_arrays

SIZES: dict[str, Any] = {"vocabulary_size": 9, "source_vocabulary_size": 11, "tied": "none"}
LENGTHS = (5, 2, 1)
# Rows of 5, 2 and 1 real tokens, with padding that is no zero.
SOURCE = np.array([[3, 9, 1, 10, 2], [7, 2, 8, 8, 4], [2, 5, 0, 6, 1]], "int32")
MASK = np.arange(5) < np.array(LENGTHS)[:, None]
TARGET = np.array([[1, 4, 8, 3], [1, 2, 2, 0], [1, 6, 5, 7]], "int32")
INPUTS = {"source_token_ids": SOURCE, "source_padding_mask": MASK}
_RENAMED = (
    ("/gated_convolution/", "/"),
    ("decoder/query", "attention/query"),
    ("decoder/key", "attention/key"),
    ("decoder/score_bias", "attention/bias"),
    ("decoder/score_vector", "attention/score"),
)

# Logits (T, V) of one sentence, and its attention, (T, S) a layer.
Reference = Callable[[dict[str, np.ndarray], list[int], list[int]], tuple[Any, list[Any]]]


def randomized(model: Any, seed: int = 3, scale: float = 0.6) -> Any:
    """Gives all weights random values: biases that are 0 would hide mistakes."""
    draw = np.random.default_rng(seed)
    for weight in model.trainable_weights:
        weight.assign(draw.normal(0.0, scale, weight.shape))
    return model


def reference_weights(model: Any) -> dict[str, np.ndarray]:
    """The weights under the names of `tests.numpy_sequence_models`."""
    found = {}
    for name, array in encoder_arrays(model).items():
        for ours, theirs in _RENAMED:
            name = name.replace(ours, theirs)
        found[name] = np.asarray(array, "float64")
    return found


def check_reference(model: Any, reference: Reference) -> None:
    """Logits and attention of each row of a padded batch are those of the sentence alone."""
    assert isinstance(model, EncoderDecoder)
    logits = model({**INPUTS, "target_token_ids": TARGET}).numpy()
    scores = model.memory_scores(TARGET, model.encode(INPUTS))
    assert len(scores) == model.num_decoder_layers
    weights = reference_weights(model)
    for row, length in enumerate(LENGTHS):
        source, target = SOURCE[row, :length].tolist(), TARGET[row].tolist()
        wanted, attention = reference(weights, source, target)
        np.testing.assert_allclose(logits[row], wanted, atol=1e-5)
        for layer, known in zip(scores, attention, strict=True):
            np.testing.assert_allclose(layer[row, 0, :, :length], known, atol=1e-5)
            np.testing.assert_array_equal(layer[row, 0, :, length:], 0.0)


def check_states_between_steps(model: Any, names: tuple[str, ...]) -> None:
    """In few bits too, what is decoded step by step is what was trained: states are not rounded."""
    steps = 40
    target = np.random.default_rng(6).integers(0, model.vocabulary_size, (3, steps)).astype("int32")
    wanted = np.asarray(model({**INPUTS, "target_token_ids": target}), "float32")
    state, slots = model.start_decoding(model.encode(INPUTS)), np.zeros((3, 1, steps), "int32")
    found = []
    for time in range(steps):
        logits, state = model.decode_step(target[:, time, None], np.int32(time), slots, state)
        assert {keras.backend.standardize_dtype(state[name].dtype) for name in names} == {"float32"}
        found.append(np.asarray(logits[:, 0], "float32"))
    np.testing.assert_allclose(np.stack(found, 1), wanted, atol=0.02 * np.abs(wanted).max())


def check_steps(model: Any) -> None:
    """Decoding step by step, with hypotheses that change their slots, is decoding in parallel."""
    slots, steps = 3, TARGET.shape[1]
    draw = np.random.default_rng(5)
    parents = draw.integers(0, slots, (len(TARGET), slots, steps)).astype("int32")
    parents[:, :, 0] = 0
    tokens = draw.integers(0, model.vocabulary_size, (steps, len(TARGET), slots)).astype("int32")
    memory = model.encode(INPUTS)
    state = model.start_decoding(memory, slots)
    # histories[row][slot]: the tokens that a hypothesis has read.
    histories: list[list[list[int]]] = [[[]] for _ in TARGET]
    found, read = [], []
    for time in range(steps):
        given = tokens[time] if time else tokens[time][:, :1]
        came = parents[:, :, :time] if time else np.zeros((len(TARGET), 1, 1), "int32")
        last = parents[:, :, time - 1] if time else np.zeros((len(TARGET), 1), "int32")
        histories = [
            [histories[r][last[r, k]] + [int(given[r, k])] for k in range(given.shape[1])]
            for r in range(len(TARGET))
        ]
        logits, state = model.decode_step(given, tf.constant(time), came, state)
        for k in range(given.shape[1]):
            found.append((time, logits[:, k]))
            read.append([histories[r][k] for r in range(len(TARGET))])
    wanted = _logits_of(model, read, INPUTS)
    for (time, one), other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other[:, time], atol=1e-5)


def _logits_of(model: Any, hypotheses: list[list[list[int]]], inputs: Any) -> np.ndarray:
    """Of many hypotheses for each row, all in one batch: logits (hypotheses, rows, T, V).

    Padding is behind what they read, where it has no part in the logits of what is before it.
    """
    rows, most = len(hypotheses[0]), max(len(row) for each in hypotheses for row in each)
    read = np.zeros((len(hypotheses), rows, most), "int32")
    for each, row in itertools.product(range(len(hypotheses)), range(rows)):
        read[each, row, : len(hypotheses[each][row])] = hypotheses[each][row]
    many = {name: np.concatenate([array] * len(hypotheses)) for name, array in inputs.items()}
    states = model.target_states(read.reshape(-1, most), model.encode(many))
    found: np.ndarray = model.logits(states).numpy()
    return found.reshape(*read.shape, -1)


def check_padding_and_order(model: Any) -> None:
    """Nothing comes from padding, or from later tokens of the target; a row may be all padding."""
    before = model({**INPUTS, "target_token_ids": TARGET}).numpy()
    other = {**INPUTS, "source_token_ids": np.where(MASK, SOURCE, 0)}
    after = model({**other, "target_token_ids": TARGET}).numpy()
    np.testing.assert_array_equal(before, after)
    for place in range(TARGET.shape[1]):
        changed = TARGET.copy()
        changed[:, place] = (changed[:, place] + 1) % model.vocabulary_size
        after = model({**INPUTS, "target_token_ids": changed}).numpy()
        np.testing.assert_array_equal(before[:, :place], after[:, :place])
        assert np.abs(before[:, place] - after[:, place]).max() > 1e-6
    nothing = {**INPUTS, "source_padding_mask": np.zeros_like(MASK)}
    assert np.isfinite(model({**nothing, "target_token_ids": TARGET})).all()


def check_search(model: Any, inputs: Any = INPUTS) -> None:
    """A wide beam finds what brute force finds, and greedy search follows the likeliest token."""
    most, end = 3, 2
    memory = model.encode(inputs)
    known = {"start_id": 1, "end_id": end, "max_lengths": np.full(3, most, "int32")}
    step, rows, width = model.decode_step, len(TARGET), model.vocabulary_size**2
    found = beam_search(
        step, model.start_decoding(memory, width), rows, beam_size=width, nbest=2, **known
    )
    others = [token for token in range(model.vocabulary_size) if token != end]
    every = [
        [*beginning, end]
        for count in range(most)
        for beginning in itertools.product(others, repeat=count)
    ]
    read = [[[1, *tokens[:-1]]] * rows for tokens in every]
    logs = keras.ops.log_softmax(_logits_of(model, read, inputs), axis=-1).numpy()
    totals = np.zeros((rows, len(every)))
    for number, tokens in enumerate(every):
        totals[:, number] = logs[number][:, np.arange(len(tokens)), tokens].sum(axis=1)
    best = np.argsort(-totals, axis=1)[:, :2]
    np.testing.assert_allclose(
        found.log_probabilities, np.take_along_axis(totals, best, 1), atol=1e-4
    )
    for row, place in itertools.product(range(rows), range(2)):
        count = int(found.lengths[row, place])
        assert found.token_ids[row, place, :count].numpy().tolist() == every[best[row, place]]
    greedy = greedy_search(step, model.start_decoding(memory), rows, **known)
    states = model.target_states(np.ones((rows, 1), "int32"), memory)
    first = np.argmax(model.logits(states)[:, 0], axis=-1)
    np.testing.assert_array_equal(greedy.token_ids[:, 0, 0], first)


def check_saved(model: Any) -> None:
    """A model of the same configuration, whose configuration is JSON's, takes its weights."""
    config = model.get_config()
    again = type(model).from_config(keras.tree.map_structure(lambda x: x, config))
    assert again.get_config() == config
    assert sorted(encoder_arrays(again)) == sorted(encoder_arrays(model))
    again.set_weights(model.get_weights())
    inputs = {**INPUTS, "target_token_ids": TARGET}
    np.testing.assert_array_equal(again(inputs), model(inputs))


def check_low_precision(model: Any, tolerance: float = 0.2) -> None:
    """Numbers of few bits give logits in float32 near those of many."""
    inputs = {**INPUTS, "target_token_ids": TARGET}
    wanted = model(inputs).numpy()
    for policy in ("mixed_bfloat16", "bfloat16", "mixed_float16"):
        other = type(model).from_config({**model.get_config(), "dtype": policy})
        other.set_weights(model.get_weights())
        found = other(inputs)
        assert found.dtype == "float32"
        np.testing.assert_allclose(found, wanted, atol=tolerance * np.abs(wanted).max())
        # A step attends in the dtype of the states.
        memory = other.encode(INPUTS)
        given = (TARGET[:, :1], tf.constant(0), np.zeros((len(TARGET), 1, 1), "int32"))
        step, _ = other.decode_step(*given, other.start_decoding(memory))
        np.testing.assert_allclose(step, wanted[:, :1], atol=tolerance * np.abs(wanted).max())


def check_all(model: Any, reference: Reference) -> None:
    """All of the above."""
    check_parts(model, reference)
    check_search(model)
    check_low_precision(model)


def check_parts(model: Any, reference: Reference) -> None:
    """What its parts compute, without what is made of it: a search, and other precisions."""
    check_reference(model, reference)
    check_steps(model)
    check_padding_and_order(model)
    check_saved(model)
