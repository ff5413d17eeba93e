"""Answers as spans of tokens: the best of each window and of each request, and their text.

Shapes: B requests, W windows of all requests, T length of a window, n spans that are kept.
"""

from typing import NamedTuple

import tensorflow as tf

from kbert.text.tokenizer import TokenOffsets

# The score of an absent span: far below every sum of two logits, yet finite.
NO_SPAN = -1e9
# The most bytes of texts that are copied to cut all spans at once.
_COPIED_BYTES = 1 << 20


class WindowSpans(NamedTuple):
    """The best spans of windows."""

    # float32 (W, n), start logit plus end logit, best first; `NO_SPAN` where there is none.
    score: tf.Tensor
    first: tf.Tensor  # int32 (W, n), the first context token of the span
    last: tf.Tensor  # int32 (W, n), its last one
    total: tf.Tensor  # float32 (W,), log of the sum of exp(score) over all spans of the window
    null: tf.Tensor  # float32 (W,), the score of "no answer here", from [CLS]


class RequestSpans(NamedTuple):
    """The best spans of requests, over all their windows."""

    # float32 (B, n), start logit plus end logit, best first; `NO_SPAN` where there is none.
    score: tf.Tensor
    probability: tf.Tensor  # float32 (B, n), among all spans of all windows and "no answer"
    first: tf.Tensor  # int32 (B, n), the first context token of the span
    last: tf.Tensor  # int32 (B, n), its last one
    total: tf.Tensor  # float32 (B,), log of the sum of exp(score) over all spans and "no answer"
    null: tf.Tensor  # float32 (B,), the score of "no answer": the lowest of the windows


class SpanText(NamedTuple):
    """Spans of the text. Where there is no span, all is 0 or empty."""

    text: tf.Tensor  # string (B, n)
    start: tf.Tensor  # int32 (B, n), first code point
    end: tf.Tensor  # int32 (B, n), the code point after the last
    start_byte: tf.Tensor  # int32 (B, n), first byte
    end_byte: tf.Tensor  # int32 (B, n), the byte after the last


def window_spans(
    logits: tf.Tensor, position: tf.Tensor, owned: tf.Tensor, max_answer_length: int, count: int
) -> WindowSpans:
    """Finds the best `count` spans of each window, as graph code.

    A span begins with a token that the window owns, ends in the window's context, not before it
    begins, and has at most `max_answer_length` tokens. The logits, float32 (W, T, 2), are of start
    and end, [CLS] first; see `WindowTokens` for `position` and `owned`.
    """
    start, end = logits[..., 0], logits[..., 1]
    null = start[:, 0] + end[:, 0]
    start = tf.where(owned, start, NO_SPAN)
    end = tf.where(position >= 0, end, NO_SPAN)
    # (W, T, L): for each start the ends that are 0, 1, ... tokens further on
    length = tf.shape(end)[1]
    padded = tf.pad(end, [[0, 0], [0, max_answer_length - 1]], constant_values=NO_SPAN)
    reach = tf.range(length)[:, tf.newaxis] + tf.range(max_answer_length)
    scores = start[:, :, tf.newaxis] + tf.gather(padded, reach, axis=1)
    scores = tf.reshape(scores, (-1, length * max_answer_length))
    scores = tf.maximum(scores, NO_SPAN)  # not twice as low
    total = tf.reduce_logsumexp(scores, axis=1)
    # So that there are always `count` columns.
    scores = tf.pad(scores, [[0, 0], [0, count]], constant_values=NO_SPAN)
    best, index = tf.math.top_k(scores, count)
    index = tf.minimum(index, length * max_answer_length - 1)
    begin = index // max_answer_length
    first = tf.gather(position, begin, batch_dims=1)
    last = first + index % max_answer_length
    first, last = (tf.where(is_span(best), place, 0) for place in (first, last))
    return WindowSpans(best, first, last, total, null)


def is_span(score: tf.Tensor) -> tf.Tensor:
    """Returns whether scores are of spans, not `NO_SPAN`: bool of the same shape."""
    return score > NO_SPAN / 2


def request_spans(
    spans: WindowSpans, row: tf.Tensor, rows: tf.Tensor, count: int
) -> RequestSpans:
    """Merges the spans of each request's windows to the best `count`, as graph code.

    The windows come in any order. `row`, int32 (W,), is the request of each window, and `rows` the
    number of requests; each has at least one window.
    """
    order = tf.argsort(row, stable=True)
    sorted_row = tf.gather(row, order)

    def by_request(values: tf.Tensor, padding: float | int) -> tf.Tensor:
        """Groups (W, n) into (B, most windows of a request times n), and `count` columns more."""
        ragged = tf.RaggedTensor.from_value_rowids(
            tf.gather(values, order),
            tf.cast(sorted_row, tf.int64),
            tf.cast(rows, tf.int64),
            validate=False,  # sorted above
        )
        dense = ragged.to_tensor(padding)
        flat = tf.reshape(dense, (rows, tf.shape(dense)[1] * values.shape[1]))
        return tf.pad(flat, [[0, 0], [0, count]], constant_values=padding)

    best, index = tf.math.top_k(by_request(spans.score, NO_SPAN), count)
    first = tf.gather(by_request(spans.first, 0), index, batch_dims=1)
    last = tf.gather(by_request(spans.last, 0), index, batch_dims=1)
    null = tf.math.unsorted_segment_min(spans.null, row, rows)
    # log(sum of exp) over all windows and "no answer"; the largest is factored out first
    largest = tf.maximum(tf.math.unsorted_segment_max(spans.total, row, rows), null)
    parts = tf.exp(spans.total - tf.gather(largest, row))
    total = tf.math.unsorted_segment_sum(parts, row, rows) + tf.exp(null - largest)
    log_total = largest + tf.math.log(total)
    probability = tf.where(is_span(best), tf.exp(best - log_total[:, tf.newaxis]), 0.0)
    return RequestSpans(best, probability, first, last, log_total, null)


def cut_spans(
    text: tf.Tensor, offsets: TokenOffsets, first: tf.Tensor, last: tf.Tensor, found: tf.Tensor
) -> SpanText:
    """Cuts spans of tokens from the texts (B,), as graph code.

    `first` and `last` are int32 (B, n), tokens of the texts, and `found` says where there is a
    span, bool (B, n).
    """
    row_starts = tf.cast(offsets.token_ids.row_starts(), tf.int32)[:, tf.newaxis]

    def of(column: tf.RaggedTensor, token: tf.Tensor) -> tf.Tensor:
        # One more value, so that there is something to gather where there are no tokens.
        values = tf.pad(column.values, [[0, 1]])
        return tf.gather(values, tf.where(found, row_starts + token, tf.size(values) - 1))

    start_byte, end_byte = of(offsets.start_byte, first), of(offsets.end_byte, last)
    text = _cut(text, start_byte, end_byte)
    return SpanText(text, of(offsets.start, first), of(offsets.end, last), start_byte, end_byte)


def _cut(text: tf.Tensor, start: tf.Tensor, end: tf.Tensor) -> tf.Tensor:
    """Cuts bytes (B, n) from texts (B,).

    All at once, each text is copied as often as it has spans; long ones are cut span by span.
    """
    count = tf.shape(start)[1]

    def at_once() -> tf.Tensor:
        return tf.strings.substr(text[:, tf.newaxis], start, end - start)

    def by_span() -> tf.Tensor:
        # One more span, of length 0, so that there is something to stack.
        columns = [tf.transpose(tf.pad(place, [[0, 0], [0, 1]])) for place in (start, end - start)]
        cuts = tf.map_fn(
            lambda span: tf.strings.substr(text, *span),
            tuple(columns),
            fn_output_signature=tf.TensorSpec((None,), tf.string),
        )
        return tf.transpose(cuts)[:, :count]

    copied = tf.cast(count, tf.int64) * tf.cast(tf.reduce_sum(tf.strings.length(text)), tf.int64)
    cuts = tf.cond(copied <= _COPIED_BYTES, at_once, by_span)
    cuts.set_shape(start.shape)
    return cuts
