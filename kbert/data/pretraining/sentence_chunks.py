"""Which sentences make an example: decided on the numbers of tokens alone.

Source: google-research/bert `create_pretraining_data.py`, `create_instances_from_document`. What is
different here is said where it is.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

Random = Callable[[], float]


class Chunk(NamedTuple):
    """An example as places among the tokens of a block.

    Attributes:
        begin_a: first token of the first text.
        end_a: the token after its last.
        begin_b: first token of the second text; `end_b` where there is none.
        end_b: the token after its last.
        is_random: whether the second text is another than what follows the first.
    """

    begin_a: int
    end_a: int
    begin_b: int
    end_b: int
    is_random: bool


class Target:
    """How many tokens the next example should have.

    `room`, or with the chance `short_share` any number from 2 to `room`. It is drawn for each
    example; the original draws once for a document, and so all examples of a book may be short.

    Args:
        room: the most tokens of an example without its special tokens.
        short_share: how many are shorter.
        random: gives a number of [0, 1).
    """

    def __init__(self, room: int, short_share: float, random: Random) -> None:
        self._room = room
        self._short_share = short_share
        self._random = random

    def draw(self) -> int:
        """The next number."""
        if self._room <= 2 or self._random() >= self._short_share:
            return self._room
        return 2 + int(self._random() * (self._room - 1))


def single_chunks(
    sentences: Sequence[int], documents: Sequence[int], target: Target
) -> Iterator[Chunk]:
    """Examples of one text: all tokens of each document, one piece after the other.

    The original has no such mode. Here no token is lost or repeated, and an example that is not the
    last of its document is as long as it can be.

    Args:
        sentences: where sentences begin among the tokens, with the end of the last one.
        documents: where documents begin among the sentences, with the end of the last one.
        target: draws lengths.
    """
    for first, last in zip(documents, documents[1:]):
        begin, end_of_document = sentences[first], sentences[last]
        while begin < end_of_document:
            end = min(begin + target.draw(), end_of_document)
            yield Chunk(begin, end, end, end, False)
            begin = end


def paired_chunks(
    sentences: Sequence[int], documents: Sequence[int], target: Target, random: Random
) -> Iterator[Chunk]:
    """Examples of two texts, of which the second follows the first or is of another document.

    Sentences are taken until there are as many tokens as the target says, and a number of them at
    random is the first text. With a chance of one half the rest is the second one. Otherwise that
    is taken from a random sentence of a random other document, and the rest comes up again in the
    next example.

    In the original a single sentence that is long enough, or the last one of its document, always
    gets a random second text, so that more than half of all pairs are such. Here it gets the next
    sentence as well; the last one of a document may be a first text, or follow the one before it
    once more; and the halves are halves. Documents of one sentence are second texts only. Where a
    block has one document, the random text comes from before or behind the chosen sentences of the
    same document; where there is nothing, the pair is one that belongs together.

    Args:
        sentences: as in `single_chunks`.
        documents: as there.
        target: draws lengths.
        random: gives a number of [0, 1).
    """
    for number, (first, last) in enumerate(zip(documents, documents[1:])):
        begin = first
        while begin < last and last - first > 1:
            wanted = target.draw()
            end = bisect_left(sentences, sentences[begin] + wanted, begin + 1, last)
            if end - begin == 1 and end < last:
                end += 1
            middle = end  # for a last sentence, which is all that is left
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
    """Sentences (first, end) that do not follow the chosen ones, or None where there are none."""
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
