"""Shortlists of a translator: learned from its texts, and used by its search.

Shapes: B rows, S source tokens, V target vocabulary, C candidates of a batch.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from kbert.data.batches.packed_examples import token_rows
from kbert.decoding.scores import shortlist_multiple
from kbert.decoding.shortlist import Shortlist, check_sentences, learn_shortlist
from kbert.text.subword import Subword


def shortlist_of_texts(
    translator: Any, sources: Sequence[Any], targets: Sequence[Any], **numbers: int
) -> Shortlist:
    """Learns a shortlist for a translator's subwords from sentences and their translations.

    Beside the translations of a piece, the same piece is allowed, where the target has it: names
    and numbers are copied. The arguments `**numbers` are those of `learn_shortlist`.
    """
    check_sentences(sources, targets)
    source, target = translator.source_subwords, translator.target_subwords
    most = translator.max_source_length
    learned = learn_shortlist(
        _tokens(source, sources, most), _tokens(target, targets, most), len(source), **numbers
    )
    ids = {piece: number for number, piece in enumerate(target.pieces)}
    for special in (target.unknown_id, target.start_id, target.padding_id):
        ids.pop(target.pieces[special], None)
    same = [ids.get(piece, target.end_id) for piece in source.pieces]
    table = np.concatenate([learned.translations, np.array(same)[:, None]], axis=1)
    return Shortlist(table, learned.everywhere)


def _tokens(subwords: Subword, texts: Sequence[Any], most: int) -> list[np.ndarray]:
    rows = token_rows(subwords, texts, most)
    return np.split(rows.token_ids, rows.starts[1:])


class Candidates(NamedTuple):
    """The tokens that a search of B rows may take."""

    token_ids: Any  # int32 (C,), those of all rows, the end token first
    hidden: Any  # float32 (B, C), 0 for those of a row, -inf for the others


def candidates_of(
    shortlist: Shortlist, inputs: dict[str, Any], end_id: int, vocabulary_size: int, multiple: int
) -> Candidates:
    """Returns the candidates of a batch, as graph code.

    Args:
        shortlist: the translations of each source token.
        inputs: those of `EncoderDecoder.encode`.
        end_id: the end token, which is a candidate of each row.
        vocabulary_size: V.
        multiple: C is a multiple of it, filled up with end tokens that are hidden.
    """
    found = tf.gather(tf.constant(shortlist.translations), inputs["source_token_ids"])
    found = tf.where(inputs["source_padding_mask"][:, :, None], found, end_id)  # (B, S, N)
    count = tf.shape(found)[0]
    rows = tf.broadcast_to(tf.range(count)[:, None, None], tf.shape(found))
    places = tf.reshape(tf.stack([rows, found], axis=-1), (-1, 2))
    ones = tf.ones_like(places[:, 0])
    allowed = tf.scatter_nd(places, ones, (count, vocabulary_size)) > 0
    everywhere = np.zeros(vocabulary_size, bool)
    everywhere[[*shortlist.everywhere, end_id]] = True
    allowed |= tf.constant(everywhere)
    is_other = tf.constant(np.arange(vocabulary_size) != end_id)
    others = tf.cast(tf.where(tf.reduce_any(allowed, axis=0) & is_other)[:, 0], tf.int32)
    filled = tf.fill((-(tf.size(others) + 1) % multiple,), end_id)
    token_ids = tf.concat([[end_id], others, filled], axis=0)
    is_real = tf.range(tf.size(token_ids)) <= tf.size(others)
    seen = tf.gather(allowed, token_ids, axis=1) & is_real
    return Candidates(token_ids, tf.where(seen, 0.0, -float("inf")))


def search_steps(translator: Any, inputs: dict[str, Any], state: Any) -> tuple[Any, Any, Any]:
    """Returns step, state and candidates of a search, by the shortlist if there is one.

    Args:
        translator: a `Translator`.
        inputs: those of `EncoderDecoder.encode`.
        state: from `start_decoding`.

    Raises:
        ValueError: the shortlist is none or of other subwords, or the model cannot have one.
    """
    model = translator.transformer
    if translator.shortlist is None:
        return model.decode_step, state, None
    if not isinstance(translator.shortlist, Shortlist):
        raise ValueError(
            "`shortlist` must be one of `learn_shortlist`, or None. "
            f"Received: shortlist={translator.shortlist!r}"
        )
    if not hasattr(model, "candidate_logits"):
        raise ValueError(
            "`shortlist` must be None for a model without `candidate_logits` (`EncoderDecoder`). "
            f"Received: one for a {type(model).__name__}"
        )
    size, end_id = model.vocabulary_size, translator.target_subwords.end_id
    translator.shortlist.check(len(translator.source_subwords), size)
    multiple = shortlist_multiple(2 * translator.beam_size)
    candidates = candidates_of(translator.shortlist, inputs, end_id, size, multiple)
    logits = model.candidate_logits(candidates.token_ids)

    def step(token_ids: Any, time: Any, slots: Any, state: Any) -> tuple[Any, Any]:
        found, decoder = model.decode_step(token_ids, time, slots, state["decoder"], logits)
        return found + state["hidden"][:, None], {**state, "decoder": decoder}

    return step, {"decoder": state, "hidden": candidates.hidden}, candidates.token_ids
