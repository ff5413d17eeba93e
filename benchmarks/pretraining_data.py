"""Text to examples to pretrain on: kbert beside Model Garden's create_pretraining_data.

    python benchmarks/pretraining_data.py ../shared/data

Both get the same file, a sentence a line and a blank line between documents, and the uncased
vocabulary; examples have 128 tokens at most, 20 of them masked. Model Garden tokenizes once and
makes so many `--copies`, masked anew; kbert makes as many epochs. Real tokens count, not padding,
and CPU seconds of all threads, on one core: the median of --rounds, less that for 1000 characters.
"""

import gzip
import os
import random
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tensorflow as tf
from official.nlp.data import create_pretraining_data as model_garden
from official.nlp.tools.tokenization import FullTokenizer
from side_by_side.results import parser, write

from kbert.data.pretraining.corpus import Corpus
from kbert.data.pretraining.dataset import pretraining_dataset
from kbert.data.pretraining.records import write_records
from kbert.text.sentences import joined_lines, split_sentences
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece

LENGTH, PREDICTIONS, GOALS = 128, 20, ("in memory", "written as TFRecords")


def write_sentences(data: Path, path: Path, size: int) -> None:
    """Half WikiText-2, half novels, of so many characters, with a sentence a line."""
    wikitext = (data / "text" / "wikitext-2.test.txt").read_text()
    novels = gzip.decompress((data / "text" / "english_novels_19c.txt.gz").read_bytes()).decode()
    with path.open("w") as file:
        for text, separator in ((wikitext, "\n \n = "), (novels, "\n\n\n")):
            for document in text[: size // 2].split(separator):
                sentences = split_sentences(joined_lines(document))
                file.write("\n".join(sentences) + "\n\n" if sentences else "")


def theirs(tokenizer: Any, copies: int, output: Path | None, text: Path) -> tuple[int, float]:
    """Tokens of Model Garden's examples, and CPU seconds; written where there is an output."""
    begin = time.process_time()
    process = model_garden.get_processor_text_fn(False, True)
    sizes = (LENGTH, copies, 0.1, 0.15, PREDICTIONS, random.Random(1))
    examples = model_garden.create_training_instances([str(text)], tokenizer, process, *sizes)
    if output is not None:
        where = (tokenizer, LENGTH, PREDICTIONS, [str(output)], False, False)
        model_garden.write_instance_to_example_files(examples, *where)
    end = time.process_time()
    return sum(len(e.tokens) for e in examples), end - begin


def ours(tokenizer: WordPiece, copies: int, output: Path | None, text: Path) -> tuple[int, float]:
    """Tokens of kbert's examples, and CPU seconds; written where there is an output."""
    sizes = {"max_sequence_length": LENGTH, "max_predictions": PREDICTIONS, "batch_size": 64}
    begin, tokens = time.process_time(), 0
    dataset = pretraining_dataset(Corpus([text]), tokenizer, epochs=copies, **sizes)

    def counted() -> Iterator[Any]:
        nonlocal tokens
        for batch in dataset:
            tokens += int(tf.math.count_nonzero(batch[0]["padding_mask"]))
            yield batch

    if output is None:
        deque(counted(), maxlen=0)
    else:
        write_records(counted(), output, overwrite=True)
    return tokens, time.process_time() - begin


def speed(run: Callable[[Path], tuple[int, float]], text: Path, small: Path, rounds: int) -> float:
    """Tokens a CPU second: the median of the rounds, less the median time of the small text."""
    starts = [run(small)[1] for _ in range(rounds + 1)][1:]  # the first one loads and warms
    runs = [run(text) for _ in range(rounds)]
    start = statistics.median(starts)
    return statistics.median(tokens / (seconds - start) for tokens, seconds in runs)


def main() -> None:
    options = parser("pretraining_data", __doc__)
    options.add_argument("data", type=Path, help="folder with vocab/ and text/")
    options.add_argument("--megabytes", type=float, default=5.0, help="of text")
    options.add_argument("--copies", type=int, nargs="+", default=[1, 10])
    arguments = options.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    tf.config.threading.set_intra_op_parallelism_threads(1)
    vocabulary = str(arguments.data / "vocab" / "bert-base-uncased-vocab.txt")
    own, peer = WordPiece(Vocabulary.from_file(vocabulary)), FullTokenizer(vocabulary, True)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder, text, small = Path(name), Path(name, "text"), Path(name, "small")
        write_sentences(arguments.data, text, int(arguments.megabytes * 1e6))
        small.write_text(text.read_text()[:1000])
        for copies in arguments.copies:
            for goal, outputs in zip(GOALS, ((None, None), (folder / "ours", folder / "theirs"))):
                runs = map(partial, (ours, theirs), (own, peer), (copies, copies), outputs)
                mine, other = (speed(run, text, small, arguments.rounds) for run in runs)
                row = {"copies": copies, "examples": goal, "kbert tokens/CPU s": round(mine)}
                row["Model Garden tokens/CPU s"] = round(other)
                rows.append(row | {"times as fast": round(mine / other, 1)})
                print(rows[-1], flush=True)
    settings: dict[str, Any] = {key: getattr(arguments, key) for key in ("megabytes", "rounds")}
    settings |= {name: version(name) for name in ("tensorflow", "tf-models-official")}
    write(arguments.output, {"pretraining_data": rows}, [], settings)


if __name__ == "__main__":
    main()
