"""Selection of the sentences of an example, by the numbers of their tokens alone.

Source: google-research/bert `create_pretraining_data.py`, `create_instances_from_document`. The
docstrings say what differs here.

`sentences` are offsets of sentences among the tokens of a block, with the end of the last one;
`documents` are offsets of documents among the sentences, likewise.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

Random = Callable[[], float]  # draws a number of [0, 1)


class Chunk(NamedTuple):
    """An example as offsets among the tokens of a block: two texts, from their first token to
    behind their last.

    `begin_b` is `end_b` where there is no second text; `is_random` says that it is not the
    continuation of the first.
    """

    begin_a: int
    end_a: int
    begin_b: int
    end_b: int
    is_random: bool


class Target:
    """The target length of the next example, in tokens.

    It is `room`, or with probability `short_share` any number from 2 to `room`. It is drawn for
    each example; the original draws once for a document, so all examples of a book may be short.
    """

    def __init__(self, room: int, short_share: float, random: Random) -> None:
        self._room = room
        self._short_share = short_share
        self._random = random

    def draw(self) -> int:
        """Draws the next target length."""
        if self._room <= 2 or self._random() >= self._short_share:
            return self._room
        return 2 + int(self._random() * (self._room - 1))


def single_chunks(
    sentences: Sequence[int], documents: Sequence[int], target: Target
) -> Iterator[Chunk]:
    """Yields examples of one text: all tokens of each document, one piece after the other.

    The original has no such mode. Here no token is lost or repeated, and an example that is not the
    last of its document has the target length.
    """
    for first, last in zip(documents, documents[1:]):
        begin, end_of_document = sentences[first], sentences[last]
        while begin < end_of_document:
            end = min(begin + target.draw(), end_of_document)
            yield Chunk(begin, end, end, end, False)
            begin = end


def full_sentences(sentences: Sequence[int], target: Target) -> Iterator[Chunk]:
    """Yields examples of whole sentences, as many as fit into the target, at least one.

    They run on over the ends of documents. Source: Liu et al. 2019, "RoBERTa", section 4.2,
    FULL-SENTENCES.
    """
    begin, last = 0, len(sentences) - 1
    while begin < last:
        # The sentence that would pass the target begins the next example.
        end = bisect_right(sentences, sentences[begin] + target.draw(), begin + 1, last + 1) - 1
        end = max(end, begin + 1)
        yield Chunk(sentences[begin], sentences[end], sentences[end], sentences[end], False)
        begin = end


def paired_chunks(
    sentences: Sequence[int], documents: Sequence[int], target: Target, random: Random
) -> Iterator[Chunk]:
    """Yields examples of two texts; the second follows the first or is of another document.

    Sentences are taken until they have as many tokens as the target, and a random number of them
    is the first text. With probability one half the rest is the second one. Otherwise the second
    one starts at a random sentence of a random other document, and the rest is used again in the
    next example.

    In the original a single sentence that is long enough, or the last one of its document, always
    gets a random second text, so that more than half of all pairs are random. Here it gets the next
    sentence as well; the last one of a document may be a first text, or follow the one before it
    once more; and exactly half are expected to be random. Documents of one sentence are second
    texts only. Where a block has one document, the random text comes from before or behind the
    chosen sentences of the same document; where there is none, the pair is a true one.
    """
    for number, (first, last) in enumerate(zip(documents, documents[1:])):
        begin = first
        while begin < last and last - first > 1:
            wanted = target.draw()
            end = bisect_left(sentences, sentences[begin] + wanted, begin + 1, last)
            if end - begin == 1 and end < last:
                end += 1
            middle = end  # where only the last sentence is left
            if end - begin > 1:
                middle = begin + 1 + int(random() * (end - begin - 1))
            other = None
            if random() < 0.5:
                tokens = wanted - sentences[middle] + sentences[begin]
                other = _random_text(sentences, documents, number, (begin, end), tokens, random)
            if other is None and middle == end:
                begin, middle = begin - 1, begin
            begin_b, end_b = (sentences[i] for i in other or (middle, end))
            yield Chunk(
                sentences[begin], sentences[middle], begin_b, end_b, is_random=other is not None
            )
            begin = end if other is None else middle


def _random_text(
    sentences: Sequence[int],
    documents: Sequence[int],
    number: int,
    chosen: tuple[int, int],
    tokens: int,
    random: Random,
) -> tuple[int, int] | None:
    """Draws sentences (first, end) that do not follow the chosen ones; None if there are none."""
    others = len(documents) - 2
    if others:
        place = int(random() * others)
        place += place >= number  # any document but this one
        low, high = documents[place], documents[place + 1]
        first = low + int(random() * (high - low))
    else:
        low, high = documents[number], documents[number + 1]
        before, behind = chosen[0] - low, high - chosen[1]
        if not before + behind:
            return None
        first = int(random() * (before + behind))
        if first < before:
            first, high = low + first, chosen[0]
        else:
            first = chosen[1] + first - before
    end = bisect_left(sentences, sentences[first] + tokens, first + 1, high)
    return first, end
