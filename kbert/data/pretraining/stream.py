"""An endless stream of examples, in a random order that can be resumed anywhere.

The blocks of a worker are taken some at a time, a window; the examples of a window are shuffled
together. So memory holds a window, whatever the corpus; the position of the next example is three
numbers; and resuming there costs no more than making one window again.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count, islice

import numpy as np

from kbert.data.pretraining.corpus import Block, Corpus, check_worker
from kbert.data.pretraining.examples import ExampleMaker, PretrainingExamples, TokenizedBlock

# The examples of a window, and their order.
_Shuffled = tuple[PretrainingExamples, np.ndarray]


@dataclass(frozen=True)
class CorpusPosition:
    """Finished epochs, finished windows of the next one, and finished examples of its next window.
    """

    epoch: int = 0
    window: int = 0
    example: int = 0


class ExampleStream:
    """Makes batches of examples, from a position on.

    Args:
        shuffle: whether blocks and examples are shuffled; otherwise they keep the text's order.
        window_blocks: number of blocks that are shuffled together.
        worker: index of this worker, from 0; each example is made by one worker.
        epochs: number of epochs, whose last batch may be smaller; None: no end.
        threads: number of blocks that are processed at a time.
    """

    def __init__(
        self,
        corpus: Corpus,
        maker: ExampleMaker,
        batch_size: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
        window_blocks: int = 8,
        worker: int = 0,
        workers: int = 1,
        epochs: int | None = None,
        threads: int = 1,
        first_position: CorpusPosition = CorpusPosition(),
    ) -> None:
        for name, value, least in (
            ("batch_size", batch_size, 1),
            ("seed", seed, 0),
            ("window_blocks", window_blocks, 1),
            ("threads", threads, 1),
        ):
            if value < least:
                raise ValueError(f"`{name}` must be at least {least}. Received: {name}={value}")
        check_worker(worker, workers)
        self.corpus = corpus
        self.maker = maker
        self.batch_size = batch_size
        self.first_position = first_position
        self._seed = seed
        self._shuffle = shuffle
        self._window_blocks = window_blocks
        self._share = (worker, workers)
        self.epochs = epochs
        self._threads = threads
        # The windows of the stream that were started, in order, and the number of their examples.
        # Every pass finds the same ones.
        self._windows: list[CorpusPosition] = []
        self._first_examples: list[int] = []
        # The tokens of a window's blocks, so that a small corpus is tokenized once.
        self._kept: dict[tuple[int, int], TokenizedBlock] = {}
        self._examples = 0

    def batches(self) -> Iterator[PretrainingExamples]:
        """Yields the batches from the first position on; the same ones each time.

        A ValueError says that a file is not text, or that this worker finds no example in an epoch.
        """
        rest: list[PretrainingExamples] = []  # less than a batch, of windows that are used up
        missing = self.batch_size
        for examples, order in self._ahead(self._shuffled_windows()):
            begin = 0
            while begin + missing <= len(order):
                last = examples.select(order[begin : begin + missing])
                yield PretrainingExamples.join([*rest, last]) if rest else last
                begin, rest, missing = begin + missing, [], self.batch_size
            if begin < len(order):
                rest.append(examples.select(order[begin:]))
                missing -= len(rest[-1])
        if rest:
            yield PretrainingExamples.join(rest)

    def position(self, batches: int) -> CorpusPosition:
        """Returns the position after some batches that were read, where a new stream resumes."""
        if batches == 0:
            return self.first_position
        example = min(batches * self.batch_size, self._examples)
        if (batches - 1) * self.batch_size >= self._examples or batches < 0:
            raise ValueError(
                f"`batches` must be at most as many as were read. Received: batches={batches}"
            )
        number = bisect_right(self._first_examples, example) - 1
        return replace(self._windows[number], example=example - self._first_examples[number])

    def _shuffled_windows(self) -> Iterator[_Shuffled]:
        place, made, number = self.first_position, 0, 0
        size = self._window_blocks if self._shuffle else 1
        epochs = count(place.epoch) if self.epochs is None else range(place.epoch, self.epochs)
        for epoch in epochs:
            first_window, found = place.window, 0
            examples_of_blocks = self._made(epoch, first_window * size)
            for window in count(first_window):
                parts = list(islice(examples_of_blocks, size))
                if not parts:
                    break
                examples = PretrainingExamples.join(parts)
                found += len(examples)
                order = np.arange(len(examples))
                if self._shuffle:
                    random = np.random.default_rng((self._seed, epoch, *self._share, window))
                    order = random.permutation(order)
                order = order[place.example :]
                if number == len(self._windows):
                    self._windows.append(CorpusPosition(epoch, window))
                    self._first_examples.append(made - place.example)
                made, number = made + len(order), number + 1
                place = CorpusPosition(epoch, first_window)  # no more examples are skipped
                self._examples = max(self._examples, made)
                yield examples, order
            if not found and not first_window:
                self._raise_for_nothing(epoch)
            place = CorpusPosition(epoch + 1)

    def _made(self, epoch: int, skipped: int) -> Iterator[PretrainingExamples]:
        """Makes the examples of each block of an epoch after the skipped ones, some at a time."""
        seed = self._seed if self._shuffle else None
        blocks = self.corpus.blocks(seed, epoch, *self._share, first=skipped)

        def make(block: Block) -> PretrainingExamples:
            name = (block.run, block.number)
            tokens = self._kept.get(name)
            if tokens is None:
                tokens = self.maker.tokenize(block)
                if len(self._kept) < self._window_blocks:
                    self._kept[name] = tokens
            return self.maker.make_from_tokens(tokens, self._seed, epoch, *name)

        if self._threads == 1:
            yield from map(make, blocks)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            begun: deque[Future[PretrainingExamples]] = deque()
            for block in blocks:
                begun.append(pool.submit(make, block))
                if len(begun) > self._threads:
                    yield begun.popleft().result()
            for future in begun:
                yield future.result()

    def _ahead(self, windows: Iterator[_Shuffled]) -> Iterator[_Shuffled]:
        """Prefetches the next window in another thread."""
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(next, windows, None)
            while (window := future.result()) is not None:
                future = pool.submit(next, windows, None)
                yield window

    def _raise_for_nothing(self, epoch: int) -> None:
        worker, workers = self._share
        reason = "text"
        if self.maker.next_sentence:
            reason = "documents of two sentences and more, or no pairs of sentences to be asked for"
        if workers > 1:
            reason += f", and at least {workers} blocks (see `block_bytes`) for as many workers"
        raise ValueError(
            f"The corpus must have {reason}. Received: no example for worker {worker} in epoch "
            f"{epoch} of {self.corpus}"
        )
